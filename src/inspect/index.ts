/**
 * Documents: everything that Tidemark reports about a subject, as the JSON types of `model/`. The CLI prints
 * them; a server can send them.
 *
 * | subject | folder | needs a recorder |
 * |---|---|---|
 * | a recording, an allocator snapshot, a saved heap, a log | `recorded/` | no |
 * | a process, a core file, this host | `live/` | yes |
 *
 *     const recording = openRecordingAt("app.tidemark");
 *     const summary = summarize(recording, "end");
 *     const diagnosis = await diagnoseRecording(recording, onProgress);
 *
 * Functions named `...Document` return the output of `--json` before rows are selected; `...Page` returns the
 * data of a page.
 * `npm run generate` writes the index of each folder from the exports of its files.
 * An `onProgress` parameter reports progress. Everything here throws TidemarkError only.
 */
export { describeForeign, type PlainValue, PROFILE_IMPORTERS } from "../formats/index.js";
export { compareSnapshots } from "../gpu/analysis/compare.js";
export { diffPageDocument } from "../gpu/analysis/page_document.js";
export { compareRanks } from "../gpu/analysis/ranks.js";
export {
  type AttachResult,
  checkedProgram,
  chooseProgram,
  commandsOnPath,
  completeRun,
  type DeviceWatchOptions,
  type Group,
  type GroupEnd,
  importFile,
  interpreterOf,
  orphanToComplete,
  pythonNames,
  type RunResult,
  runUnderAgent,
  type StartedPython,
  startGroup,
} from "../record/index.js";
export type { Moment, Recording } from "../recording/types.js";
export { doctorDocument } from "./live/doctor/doctor.js";
export { firstRunRemarks } from "./live/doctor/shown_once.js";
export * from "./live/index.js";
export * from "./recorded/index.js";
