/** XML of Valgrind's memcheck (`--xml=yes`, protocol 4 to 6): blocks that were not freed at the end. */
import { nothingThere } from "../../../model/errors/errors.js";
import { Domain } from "../../../model/profile/profile.js";
import { type ForeignFrame, ImportedSites, nativeFrame } from "../imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  NO_SERIES,
  type ProfileImporter,
} from "../importer.js";
import { ownFrames } from "./native_place.js";

export const memcheck: ProfileImporter = {
  name: "memcheck",
  description: "Valgrind memcheck: the XML of --xml=yes --leak-check=full",
  recognizes: ({ head }) => /^\s*<\?xml[^>]*>\s*<valgrindoutput>/.test(head),
  read,
};

function read(file: ForeignFile): ForeignRecording {
  const text = file.bytes.toString("utf8");
  const tool = elementOf(text, "protocoltool");
  if (tool !== "memcheck") {
    throw new ForeignFault(`it was written by the tool '${tool.slice(0, 20)}', not of memcheck`);
  }
  if (!text.includes("</valgrindoutput>")) {
    throw new ForeignFault("it is cut off before </valgrindoutput>");
  }
  const sites = new ImportedSites({
    pid: Number(elementOf(text, "pid")) || 0,
    command: elementsOf(elementOf(text, "argv"), /<(?:exe|arg)>([^<]*)</g).map(decode),
    python: "",
    startedMs: file.writtenMs,
  });
  let leaks = 0;
  for (const error of elements(text, "error")) {
    const bytes = countOf(error, "leakedbytes");
    if (bytes > 0) {
      leaks += 1;
      const frames = [...elements(elementOf(error, "stack"), "frame")].map(frameOf);
      sites.add(
        {
          stack: sites.stack(ownFrames(frames).toReversed()),
          domain: Domain.native,
          label: sites.label("leak", elementOf(error, "kind").replace(/^Leak_/, "")),
        },
        { live: bytes, liveObjects: countOf(error, "leakedblocks") },
      );
    }
  }
  if (leaks === 0) {
    throw nothingThere(
      `${file.path} reports no block that was still allocated at the end`,
      "run valgrind with --leak-check=full --show-leak-kinds=all",
    );
  }
  return {
    tool: "Valgrind memcheck",
    precision: "exact",
    known: ["live", "objects"],
    snapshots: [sites.snapshot(file.writtenMs, 0, 0)],
    tables: sites.tables(),
    startedMs: file.writtenMs,
    endedMs: file.writtenMs,
    ...NO_SERIES,
    limits: [
      "Only blocks that memcheck reports at the end are counted, by kind with --by leak; without --show-leak-kinds=all those that are still reachable are missing.",
    ],
  };
}

/** 0 if the element is missing: the error is not a leak. */
function countOf(error: string, name: string): number {
  const text = elementOf(error, name);
  if (!/^\d{0,16}$/.test(text)) {
    throw new ForeignFault(`${name} is '${text.slice(0, 40)}', which is not a number of a leak`);
  }
  return Number(text);
}

function frameOf(text: string): ForeignFrame {
  const file = elementOf(text, "file");
  const folder = elementOf(text, "dir");
  const place = file === "" ? elementOf(text, "obj") : folder === "" ? file : `${folder}/${file}`;
  return nativeFrame(
    decode(elementOf(text, "fn")),
    decode(place),
    Number(elementOf(text, "line")) || 0,
  );
}

/** Contents of the elements of a name, which Valgrind never nests in themselves. */
function* elements(text: string, name: string): Generator<string> {
  const [open, close] = [`<${name}>`, `</${name}>`];
  for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, at)) {
    const end = text.indexOf(close, at);
    if (end < 0) {
      return;
    }
    yield text.slice(at + open.length, end);
    at = end + close.length;
  }
}

/** "" if there is none. */
function elementOf(text: string, name: string): string {
  const [first = ""] = elements(text, name);
  return first.trim();
}

function elementsOf(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, content = ""]) => content);
}

const ENTITIES: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  amp: "&",
  quot: '"',
  apos: "'",
};

function decode(text: string): string {
  return text.replace(/&(lt|gt|amp|quot|apos);/g, (_all, name: string) => ENTITIES[name] ?? "");
}
