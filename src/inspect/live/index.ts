/** Made by `npm run generate` from the exports of this folder's files. Do not edit. */
export { attachAndRecord, commandOf, detachAgent } from "./attach.js";
export type { AttachProgress } from "./attach_progress.js";
export { diagnoseProcess } from "./diagnosis.js";
export { type FileKind, identifyFile } from "./file_kind.js";
export { gpuProcessDocument } from "./gpu/gpu_process.js";
export { gpuProcessPage } from "./gpu/gpu_process_page.js";
export { gpuTopDocument } from "./gpu/gpu_top.js";
export { type GpuTopHistory, gpuTopPoller } from "./gpu/gpu_top_history.js";
export { heapDocument, heapPage } from "./heap.js";
export { coreLedgerDocument, ledgerDocument } from "./ledger.js";
export {
  openRecordingAt,
  type RecordingProgress,
  recordingOfProcess,
  recordingProgress,
} from "./open_recording.js";
export { processByName } from "./process_by_name.js";
export {
  listProcesses,
  pythonProcesses,
  type WatchedProcesses,
  watchedDocument,
  watchProcesses,
} from "./process_list.js";
export { filterText, type ProcessRow } from "./process_rows.js";
export { selectStacks, stacksDocument } from "./stacks.js";
