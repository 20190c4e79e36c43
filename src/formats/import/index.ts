/** The importers: to add one, write its file in this folder and add it to the list. */
import { shellWord } from "../../model/base/shell_word.js";
import { damagedInput, tooLarge } from "../../model/errors/errors.js";
import { notImportable, reportOfTool } from "../../model/errors/file_errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { folded } from "./folded.js";
import { heaptrack } from "./heaptrack.js";
import {
  ForeignExcess,
  ForeignFault,
  type ForeignRecording,
  type ImportOptions,
  type ProfileImporter,
} from "./importer.js";
import { readForeignFile, unpackCommand } from "./input.js";
import { memoryProfiler } from "./memory_profiler.js";
import { memray } from "./memray/memray.js";
import { objgraph } from "./objgraph.js";
import { requirePossible } from "./possible.js";
import { pprof } from "./pprof.js";
import { scalene } from "./scalene.js";
import { speedscope } from "./speedscope.js";
import { tensorflowMemory } from "./tensorflow/memory_profile.js";
import { tensorflowTrace } from "./tensorflow/profiler_trace.js";
import { type ToolReport, toolReport } from "./tool_reports.js";
import { torchTimeline } from "./torch/memory_timeline.js";
import { torchTrace } from "./torch/profiler_trace.js";
import { tracemalloc } from "./tracemalloc/tracemalloc.js";
import { dhat } from "./valgrind/dhat.js";
import { massif } from "./valgrind/massif.js";
import { memcheck } from "./valgrind/memcheck.js";

export type { ForeignRecording, ImportOptions, PlainValue, ProfileImporter } from "./importer.js";

/** In the order in which their content is tried: formats with a mark of their own first. */
export const PROFILE_IMPORTERS: readonly ProfileImporter[] = [
  tracemalloc,
  memray,
  memoryProfiler,
  scalene,
  massif,
  memcheck,
  dhat,
  heaptrack,
  pprof,
  speedscope,
  torchTimeline,
  torchTrace,
  tensorflowMemory,
  tensorflowTrace,
  objgraph,
  folded,
];

/**
 * Reads another tool's file, whose format is recognized by its content. Throws TM-E003, TM-E004; TM-E018 for an
 * unknown format; TM-E005, TM-E006 and TM-E008 for a damaged file, an unsupported version or too large content.
 */
export function readForeign(path: string, options: ImportOptions): ForeignRecording {
  try {
    const file = readForeignFile(path);
    const importer = PROFILE_IMPORTERS.find((candidate) => candidate.recognizes(file));
    const report = importer === undefined ? toolReport(file) : undefined;
    if (report !== undefined) {
      throw reportOfTool(path, report.what, report.next);
    }
    if (importer === undefined) {
      throw notImportable(path, file.bytes.length === 0, unpackCommand(file));
    }
    const recording = importer.read(file, options);
    requirePossible(recording);
    return recording;
  } catch (error) {
    throw readable(error, path);
  }
}

/** What a file of another tool is, and what to do with it; undefined for other files and for those that cannot be read. */
export function describeForeign(path: string): ToolReport | undefined {
  try {
    const file = readForeignFile(path);
    const importer = PROFILE_IMPORTERS.find((candidate) => candidate.recognizes(file));
    return importer === undefined
      ? toolReport(file)
      : {
          what: `a file of ${importer.name}`,
          next: `import it: tidemark import ${shellWord(path)}`,
        };
  } catch {
    return undefined;
  }
}

function readable(error: unknown, path: string): unknown {
  if (error instanceof ForeignFault) {
    return damagedInput(path, error.message, "its tool was stopped, or the copy is incomplete");
  }
  if (error instanceof ForeignExcess) {
    return tooLarge(path, error.limit);
  }
  // Arrays, maps and strings have a largest size, and so has the depth of calls for nested values.
  if (error instanceof RangeError || reasonOf(error).code === "ERR_STRING_TOO_LONG") {
    return tooLarge(path, `what fits in memory (${reasonOf(error).message.toLowerCase()})`);
  }
  return error;
}
