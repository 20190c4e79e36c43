/** Of which processes the diagnosis should see allocation sites: reading them is most of its work, so RSS decides first. */
import type { FleetDiagnosisJson } from "../../model/documents/fleet_diagnosis_document.js";
import type { FleetProcess, ServiceEvidence } from "./fleet_evidence.js";

const WEEK_HOURS = 7 * 24;
/** A leak that RSS may hide matters if it adds this share of the level in a week. */
const LEAST_IN_A_WEEK = 0.02;
/** Those with the most readings show the most of a site's course. */
const MOST_PROCESSES = 60;

/** Names of processes; none if RSS alone excludes a leak that matters. */
export function processesForSites(
  { processes }: ServiceEvidence,
  { leak, versions, oddInstances }: FleetDiagnosisJson,
): string[] {
  const open = versions
    .filter(({ high, levelBytes }) => high * WEEK_HOURS > LEAST_IN_A_WEEK * levelBytes)
    .at(-1);
  const version = leak?.version ?? open?.version;
  const odd = new Set(oddInstances.map(({ instance }) => instance));
  const isOdd = ({ instance }: FleetProcess) => Number(odd.has(instance));
  return processes
    .filter((each) => each.version === version)
    .sort((a, b) => isOdd(b) - isOdd(a) || b.rss.times.length - a.rss.times.length)
    .slice(0, MOST_PROCESSES)
    .map(({ process }) => process);
}
