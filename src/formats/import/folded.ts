/**
 * Folded stacks, one a line: "main (app.py:3);load (app.py:9) 4096". The numbers have no unit: py-spy's raw format
 * counts samples of CPU time, memory profilers write bytes.
 */
import { FrameKind } from "../../model/profile/profile.js";
import { type ForeignFrame, ImportedSites, UNKNOWN_DOMAIN } from "./imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  type ImportOptions,
  NO_SERIES,
  type ProfileImporter,
} from "./importer.js";
import { linesOf, requireLastLine, splitPlace } from "./text.js";

const LINE = /^(.*) (\d+(?:\.\d+)?)\s*$/;

export const folded: ProfileImporter = {
  name: "folded",
  description:
    "folded stacks: py-spy record --format raw and others; --value gives their numbers a meaning",
  recognizes: ({ head }) => {
    const lines = head
      .split("\n")
      .slice(0, 20)
      .filter((line) => line !== "");
    // The last line may be cut by the end of the head.
    const whole = lines.length > 1 && head.length >= 1 << 16 ? lines.slice(0, -1) : lines;
    return (
      whole.length > 0 &&
      whole.every((line) => LINE.test(line)) &&
      whole.some((line) => line.includes(";") || /:\d{1,10}\) \d/.test(line))
    );
  },
  read,
};

function read(file: ForeignFile, { value }: ImportOptions): ForeignRecording {
  requireLastLine(file.bytes);
  const sites = new ImportedSites({ pid: 0, command: [], python: "", startedMs: file.writtenMs });
  for (const line of linesOf(file.bytes)) {
    if (line.trim() !== "") {
      const [, stack = "", number = ""] = LINE.exec(line) ?? [];
      if (number === "") {
        throw new ForeignFault(`the line '${line.slice(0, 40)}' is not a stack with a number`);
      }
      const figures = value === null ? {} : { [value]: Number(number) };
      sites.add(
        {
          stack: sites.stack((stack === "" ? [] : stack.split(";")).map(frameOf)),
          domain: UNKNOWN_DOMAIN,
        },
        figures,
      );
    }
  }
  const timeMs = file.writtenMs;
  return {
    tool: "folded stacks",
    precision: "unknown",
    known: value === null ? [] : [value],
    snapshots: [sites.snapshot(timeMs, 0, value === "peak" ? timeMs : 0)],
    tables: sites.tables(),
    startedMs: timeMs,
    endedMs: timeMs,
    ...NO_SERIES,
    limits:
      value === null
        ? [
            "The numbers of folded stacks have no unit; py-spy counts samples of CPU time. If they are bytes, import the file with --value live.",
          ]
        : [],
  };
}

/** "load (app.py:9)", as py-spy and Tidemark write it, or a bare name. */
function frameOf(text: string): ForeignFrame {
  const at = text.endsWith(")") ? text.lastIndexOf(" (") : -1;
  if (at < 0) {
    return { function: text, file: "", line: 0, kind: FrameKind.native };
  }
  const { file, line } = splitPlace(text.slice(at + 2, -1));
  const kind = line === 0 ? FrameKind.native : FrameKind.python;
  return { function: text.slice(0, at), file, line, kind };
}
