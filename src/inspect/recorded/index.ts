/** Made by `npm run generate` from the exports of this folder's files. Do not edit. */
export { diagnoseRecording, diagnoseSnapshot } from "./diagnosis.js";
export { bySignificance, diffDocument, isNoise } from "./diff.js";
export { oomDocument, withSnapshotCheck } from "./gpu/gpu_oom.js";
export { analyseSnapshot, snapshotPage, withVerdict } from "./gpu/gpu_snapshot.js";
export { isSnapshot } from "./gpu/snapshot_file.js";
export { heapDiffDocument, heapDiffPage } from "./heap_diff.js";
export { bySize, linesDocument } from "./lines.js";
export {
  type Planned,
  planComparedWithLog,
  planComparedWithRecording,
  planComparedWithSnapshot,
  planDocument,
  planPage,
} from "./plan.js";
export { buildReport, reportDocument } from "./report.js";
export type { RowChoice } from "./rows/chosen_rows.js";
export {
  addUp,
  type Estimate,
  groupSites,
  type SiteGroup,
  splitStack,
} from "./rows/site_groups.js";
export type { MovingSite } from "./site_movement.js";
export { summarize } from "./summary.js";
