/** Files of Valgrind's DHAT (`dhat.out.PID`, JSON), version 2 (docs: dh-manual, the file format). */
import { notOpened } from "../../../model/errors/file_errors.js";
import type { LineFigures } from "../../../model/profile/imported.js";
import { Domain } from "../../../model/profile/profile.js";
import { type ForeignFrame, ImportedSites } from "../imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  NO_SERIES,
  type ProfileImporter,
} from "../importer.js";
import {
  amountOf,
  type JsonObject,
  numberOf,
  objectOf,
  parseJson,
  requiredList,
  textOf,
} from "../json.js";
import { ownFrames, placeOf } from "./native_place.js";

const VERSION = 2;

export const dhat: ProfileImporter = {
  name: "dhat",
  description: "Valgrind DHAT: dhat.out.PID, also --mode=copy",
  recognizes: ({ head }) => /^\s*\{\s*"dhatFileVersion"\s*:/.test(head),
  read,
};

function read(file: ForeignFile): ForeignRecording {
  const content = objectOf(parseJson(file));
  const version = numberOf(content.dhatFileVersion);
  if (version !== VERSION) {
    throw new ForeignFault(`its version is ${version}, and only ${VERSION} is known`);
  }
  const sites = new ImportedSites({
    pid: amountOf(content.pid, "pid", 0),
    command: textOf(content.cmd).split(" "),
    python: "",
    startedMs: file.writtenMs,
  });
  if (textOf(content.mode) === "ad-hoc") {
    throw notOpened(
      file.path,
      `a DHAT profile of ad-hoc events, whose units are not bytes`,
      "run valgrind --tool=dhat without --mode=ad-hoc",
    );
  }
  const frames = requiredList(content.ftbl, "table of frames").map((text) => placeOf(textOf(text)));
  const points = requiredList(content.pps, "program points").map(objectOf);
  const copies = textOf(content.mode) === "copy";
  const lines = copies ? copiedLines(points, frames) : [];
  if (!copies) {
    addPoints(sites, points, frames);
  }
  const isHeap = textOf(content.mode) === "heap" && amountOf(content.tg, "tg", 0) > 0;
  return {
    tool: "Valgrind DHAT",
    precision: "exact",
    known: copies
      ? []
      : isHeap
        ? ["live", "peak", "allocated", "objects"]
        : ["allocated", "objects"],
    snapshots: copies ? [] : [sites.snapshot(file.writtenMs, 0, isHeap ? file.writtenMs : 0)],
    tables: sites.tables(),
    startedMs: file.writtenMs,
    endedMs: file.writtenMs,
    ...NO_SERIES,
    lines,
    limits: copies ? ["The file counts copied bytes, not memory: see tidemark lines."] : [],
  };
}

function addPoints(
  sites: ImportedSites,
  points: readonly JsonObject[],
  frames: readonly ForeignFrame[],
): void {
  for (const point of points) {
    sites.add(
      { stack: sites.stack(ownFrames(stackOf(point, frames)).toReversed()), domain: Domain.native },
      {
        live: amountOf(point.eb, "eb", 0),
        liveObjects: amountOf(point.ebk, "ebk", 0),
        peak: amountOf(point.gb, "gb", 0),
        peakObjects: amountOf(point.gbk, "gbk", 0),
        allocated: amountOf(point.tb, "tb"),
        allocatedObjects: amountOf(point.tbk, "tbk"),
      },
    );
  }
}

/** By the innermost frame with a source line: the leaf is memcpy itself. */
function copiedLines(
  points: readonly JsonObject[],
  frames: readonly ForeignFrame[],
): LineFigures[] {
  const sums = new Map<string, LineFigures>();
  for (const point of points) {
    const frame = stackOf(point, frames).find(({ line }) => line > 0);
    if (frame !== undefined) {
      const key = `${frame.line} ${frame.file}`;
      const copiedBytes = (sums.get(key)?.copiedBytes ?? 0) + amountOf(point.tb, "tb");
      const { file, line } = frame;
      sums.set(key, { file, line, function: frame.function, peakBytes: null, copiedBytes });
    }
  }
  return [...sums.values()];
}

/** Leaf first. */
function stackOf(point: JsonObject, frames: readonly ForeignFrame[]): ForeignFrame[] {
  return requiredList(point.fs, "list of frames of a point").flatMap((value) => {
    const index = amountOf(value, "the number of a frame");
    const frame = frames[index];
    if (frame === undefined) {
      throw new ForeignFault(`a stack names frame ${index} of ${frames.length}`);
    }
    return frame.function === "[root]" ? [] : [frame];
  });
}
