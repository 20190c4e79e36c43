export { ADVICE, type Advice } from "./advice.js";
export { censusEvidence } from "./census_evidence.js";
export type {
  CensusEvidence,
  CollectorEvidence,
  Evidence,
  HolderEvidence,
  ProbeEvidence,
  ProcessEvidence,
  TypeCourse,
} from "./evidence.js";
export { holderEvidenceOf } from "./holder_evidence.js";
export { readingsAtWork } from "./readings.js";
export { shortPath } from "./short_path.js";
export { framesOf, type SiteHistories, SiteHistoryBuilder } from "./site_history.js";
export { evidenceOfSnapshots } from "./snapshot_evidence.js";
export { judgeSites, type SiteCourse, type SiteJudgement } from "./suspects.js";
export { theilSen } from "./trend.js";
export { growingTypes } from "./type_growth.js";
export { diagnose } from "./verdict.js";
