/** Made by `npm run generate` from the exports of this folder's files. Do not edit. */
export type { RowChoice } from "./chosen_rows.js";
export { diagnoseRecording, diagnoseSnapshot } from "./diagnosis.js";
export { bySignificance, diffDocument, isNoise } from "./diff.js";
export { oomDocument, withSnapshotCheck } from "./gpu_oom.js";
export { analyseSnapshot, snapshotPage, withVerdict } from "./gpu_snapshot.js";
export { heapDiffDocument, heapDiffPage } from "./heap_diff.js";
export { linesDocument } from "./lines.js";
export { buildReport, reportDocument } from "./report.js";
export { addUp, type Estimate, groupSites, type SiteGroup, splitStack } from "./site_groups.js";
export type { MovingSite } from "./site_movement.js";
export { isSnapshot } from "./snapshot_file.js";
export { summarize } from "./summary.js";
