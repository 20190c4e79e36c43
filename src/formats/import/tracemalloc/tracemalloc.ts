/** Snapshots of the standard library's tracemalloc: `tracemalloc.take_snapshot().dump(FILE)`, a pickle. */
import { shellWord } from "../../../model/base/shell_word.js";
import type { StackId } from "../../../model/base/units.js";
import { nothingThere } from "../../../model/errors/errors.js";
import { notOpened } from "../../../model/errors/file_errors.js";
import { Domain } from "../../../model/profile/profile.js";
import { ImportedSites, pythonFrame } from "../imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  NO_DURATION,
  NO_SERIES,
  type ProfileImporter,
} from "../importer.js";
import { PickleObject, type PickleValue, readPickle } from "./pickle.js";

const TYPES = ["tracemalloc.Snapshot", "tracemalloc._Traces"];
const NEWEST_PROTOCOL = 5;

export const tracemalloc: ProfileImporter = {
  name: "tracemalloc",
  description: "tracemalloc: snapshot.dump(FILE), read without executing the pickle",
  recognizes: ({ bytes }) => bytes[0] === 0x80 && (bytes[1] ?? 255) <= NEWEST_PROTOCOL,
  read,
};

function read(file: ForeignFile): ForeignRecording {
  const snapshot = readPickle(file.bytes, file.path, TYPES);
  if (!(snapshot instanceof PickleObject)) {
    throw notOpened(
      file.path,
      "a pickle of plain values, not a tracemalloc snapshot",
      `a snapshot of PyTorch's allocator is opened by: tidemark gpu ${shellWord(file.path)}`,
    );
  }
  const traces = field(field(snapshot, "traces"), "_traces");
  if (!Array.isArray(traces)) {
    throw new ForeignFault("it has no list of traces");
  }
  const sites = new ImportedSites({ pid: 0, command: [], python: "", startedMs: file.writtenMs });
  const stacks = new Map<PickleValue, StackId>();
  for (const trace of traces) {
    addTrace(sites, trace, stacks);
  }
  if (traces.length === 0) {
    throw nothingThere(`${file.path} contains no allocation`, "call tracemalloc.start() earlier");
  }
  const limit = field(snapshot, "traceback_limit");
  return {
    tool: "tracemalloc",
    precision: "exact",
    known: ["live", "objects", "python"],
    snapshots: [sites.snapshot(file.writtenMs, NO_DURATION, 0)],
    tables: sites.tables(),
    startedMs: file.writtenMs,
    endedMs: file.writtenMs,
    ...NO_SERIES,
    limits: [
      "Only memory from Python's own allocators and from libraries that report to tracemalloc is counted.",
      ...(typeof limit === "number"
        ? [
            `Stacks have at most ${limit} frame${limit === 1 ? "" : "s"}, as tracemalloc.start() asked for.`,
          ]
        : []),
    ],
  };
}

/** (domain, size, ((file, line), ...) with the leaf first, number of frames since 3.9) */
function addTrace(
  sites: ImportedSites,
  trace: PickleValue,
  stacks: Map<PickleValue, StackId>,
): void {
  const [allocator, size, frames] = Array.isArray(trace) ? trace : [];
  if (typeof size !== "number" || !Array.isArray(frames)) {
    throw new ForeignFault("a trace is not a size with frames");
  }
  let stack = stacks.get(frames);
  if (stack === undefined) {
    stack = sites.stack(frames.map(frameOf).reverse());
    stacks.set(frames, stack);
  }
  // 0 is the interpreter; NumPy and other libraries report under numbers of their own.
  const domain = allocator === 0 ? Domain.python : Domain.native;
  sites.add({ stack, domain }, { live: size, liveObjects: 1 });
}

/** tracemalloc does not know functions. */
function frameOf(value: PickleValue) {
  const [file, line] = Array.isArray(value) ? value : [];
  if (typeof file !== "string" || typeof line !== "number") {
    throw new ForeignFault("a frame is not a file with a line");
  }
  return pythonFrame("", file, line);
}

function field(object: PickleValue, name: string): PickleValue {
  return object instanceof PickleObject && object.state instanceof Map
    ? (object.state.get(name) ?? null)
    : null;
}
