/**
 * From evidence to a verdict: what grows, which site, who holds it, how fast, what to do, how sure it is.
 *
 *     const diagnosis = diagnose(evidence);      // pure; src/record and the commands gather evidence
 */
export { ADVICE, type Advice } from "./advice.js";
export type {
  CensusEvidence,
  CollectorEvidence,
  Evidence,
  HolderEvidence,
  ProbeEvidence,
  ProcessEvidence,
  TypeCourse,
} from "./evidence.js";
export { librarySite } from "./library_types.js";
export { handlesSite } from "./named_holder.js";
export { isImport, isOwn, ownFrame } from "./own_code.js";
export { readingsAtWork } from "./readings.js";
export { shortPath } from "./short_path.js";
export { framesOf, type SiteHistories, SiteHistoryBuilder } from "./site_history.js";
export { evidenceOfSnapshots } from "./snapshot_evidence.js";
export { judgeSites, type SiteCourse, type SiteJudgement } from "./suspects.js";
export { theilSen } from "./trend.js";
export { growingTypes } from "./type_growth.js";
export { diagnose } from "./verdict.js";
