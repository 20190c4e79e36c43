/**
 * Documents: everything that Tidemark knows of a subject, as the JSON types of `model/`. The CLI prints them, a
 * server can send them.
 *
 * | subject | folder | needs a recorder |
 * |---|---|---|
 * | a recording, an allocator snapshot, a saved heap, a log | `recorded/` | no |
 * | a process, a core file, this host | `live/` | yes |
 *
 *     const recording = openRecordingAt("app.tidemark");
 *     const summary = summarize(recording, "end");
 *     const diagnosis = await diagnoseRecording(recording, tell);
 *
 * Functions named `...Document` return what `--json` prints before its rows are selected, `...Page` what a page holds.
 * A `tell` parameter reports progress. Everything here throws TidemarkError only.
 */
export { compareSnapshots } from "../gpu/analysis/compare.js";
export { diffPageDocument } from "../gpu/analysis/page_document.js";
export { compareRanks } from "../gpu/analysis/ranks.js";
export {
  type AttachResult,
  chooseProgram,
  commandsOnPath,
  type DeviceWatchOptions,
  importPool,
  pythonNames,
  type RunResult,
  runUnderAgent,
} from "../record/index.js";
export type { Moment, Recording } from "../recording/types.js";
export { attachAndRecord, commandOf, detachAgent } from "./live/attach.js";
export type { AttachProgress } from "./live/attach_progress.js";
export { diagnoseProcess } from "./live/diagnosis.js";
export { doctorDocument } from "./live/doctor/doctor.js";
export { firstRunRemarks } from "./live/doctor/told_once.js";
export { type FileKind, identifyFile } from "./live/file_kind.js";
export { gpuProcessDocument } from "./live/gpu_process.js";
export { gpuProcessPage } from "./live/gpu_process_page.js";
export { gpuTopDocument } from "./live/gpu_top.js";
export { type GpuTopHistory, gpuTopPoller } from "./live/gpu_top_history.js";
export { heapDocument, heapPage } from "./live/heap.js";
export { coreLedgerDocument, ledgerDocument } from "./live/ledger.js";
export {
  openRecordingAt,
  type RecordingProgress,
  recordingOfProcess,
  recordingProgress,
} from "./live/open_recording.js";
export {
  listProcesses,
  pythonProcesses,
  type WatchedProcesses,
  watchedDocument,
  watchProcesses,
} from "./live/process_list.js";
export { filterText, type ProcessRow } from "./live/process_rows.js";
export { selectStacks, stacksDocument } from "./live/stacks.js";
export { diagnoseRecording, diagnoseSnapshot } from "./recorded/diagnosis.js";
export { diffDocument } from "./recorded/diff.js";
export { oomDocument, withSnapshotCheck } from "./recorded/gpu_oom.js";
export { analyseSnapshot, snapshotPage, withVerdict } from "./recorded/gpu_snapshot.js";
export { heapDiffDocument, heapDiffPage } from "./recorded/heap_diff.js";
export { linesDocument } from "./recorded/lines.js";
export { buildReport } from "./recorded/report.js";
export { reportDocument } from "./recorded/report_page.js";
export {
  addUp,
  type Estimate,
  groupSites,
  type SiteGroup,
  splitStack,
} from "./recorded/site_groups.js";
export type { MovingSite } from "./recorded/site_movement.js";
export { isSnapshot } from "./recorded/snapshot_file.js";
export { summarize } from "./recorded/summary.js";
