export { censusEvidence } from "./evidence/census_evidence.js";
export type {
  CensusEvidence,
  Evidence,
  ProbeEvidence,
  ProcessEvidence,
  TypeCourse,
} from "./evidence/evidence.js";
export { holderEvidenceOf } from "./evidence/holder_evidence.js";
export { withoutLaunchers } from "./evidence/launcher.js";
export { restrictedTo } from "./evidence/selection.js";
export { evidenceOfSnapshots } from "./evidence/snapshot_evidence.js";
export { growingTypes } from "./evidence/type_growth.js";
export type {
  FleetProcess,
  LineHolder,
  ServiceEvidence,
  SiteReadings,
} from "./fleet/curves/fleet_evidence.js";
export { diagnoseService } from "./fleet/diagnose_fleet.js";
export { type MemoryCourse, type OddCourse, oddMemory } from "./fleet/instances/odd_memory.js";
export { lineHolders } from "./fleet/lines/bounded_lines.js";
export {
  rightSize,
  type SizedProcess,
  type SizeEvidence,
  USUAL_MARGIN,
} from "./fleet/right_size.js";
export { SHORT_LIFE_MS } from "./fleet/short_lives.js";
export { processesForSites, processesToLookAt } from "./fleet/sites_wanted.js";
export { assessGrowth, doubtAbout } from "./series/growth.js";
export { readingsAtWork } from "./series/readings.js";
export {
  isBelowLive,
  isPassing,
  lastReading,
  levelAtEnd,
  membersOf,
  pssOfTree,
  type Reading,
  type TotalGrowth,
  totalGrowth,
} from "./series/total_growth.js";
export { theilSen } from "./series/trend.js";
export { framesOf, SiteHistoryBuilder } from "./sites/site_history.js";
export { judgeSites, type SiteCourse, type SiteJudgement } from "./sites/suspects.js";
export { diagnose } from "./verdict/verdict.js";
export { adviceExamples } from "./wording/advice_examples.js";
export { killsText } from "./wording/fleet_sentence.js";
