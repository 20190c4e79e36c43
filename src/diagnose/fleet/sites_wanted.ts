/**
 * Of which processes the diagnosis should see allocation sites: reading them is most of its work, so RSS decides first. And
 * which should get the agent where none had it.
 */
import type { Bytes, TimeMs } from "../../model/base/units.js";
import type { FleetDiagnosisJson } from "../../model/documents/fleet_diagnosis_document.js";
import { median } from "../series/trend.js";
import type { FleetProcess, ServiceEvidence } from "./curves/fleet_evidence.js";

const WEEK_HOURS = 7 * 24;
/** A leak that RSS may hide matters if it adds this share of the level in a week. */
const LEAST_IN_A_WEEK = 0.02;
/** An instance may leak alone if it rose further than its siblings by this share of their level. */
const LEAST_AHEAD = 0.02;
const FEWEST_INSTANCES = 3;
const FEWEST_READINGS = 25;
/** Those with the most readings show the most of a site's course. */
const MOST_PROCESSES = 60;
/** Of earlier versions, whose lines the version's are compared with. */
const MOST_EARLIER = 30;
/** Two, so that a line that both name is no chance. */
const CANDIDATES = 2;
/** Nearer to its limit a process gets no agent. */
const LEAST_LEFT_MS = 30 * 60_000;

/**
 * Names of processes; none if RSS alone excludes a leak that matters. The interval of a version is that of most of its instances,
 * and does not exclude a leak of one of them.
 */
export function processesForSites(
  { processes, window }: ServiceEvidence,
  { leak, versions, oddInstances }: FleetDiagnosisJson,
): string[] {
  const open = versions.findLast(
    ({ version, high, levelBytes }) =>
      high * WEEK_HOURS > LEAST_IN_A_WEEK * levelBytes ||
      hasOneAhead(
        processes.filter((each) => each.version === version),
        window.endMs,
        LEAST_AHEAD * levelBytes,
      ),
  );
  const version = leak?.version ?? open?.version;
  const odd = new Set(oddInstances.map(({ instance }) => instance));
  const isOdd = ({ instance }: FleetProcess) => Number(odd.has(instance));
  const own = processes.filter((each) => each.version === version);
  const names = versions.map((each) => each.version);
  const before = new Set(names.slice(0, Math.max(0, names.indexOf(version ?? ""))));
  return [
    ...longest(own, MOST_PROCESSES, isOdd),
    ...longest(
      processes.filter((each) => before.has(each.version)),
      MOST_EARLIER,
    ),
  ].map(({ process }) => process);
}

/** Whether an instance that runs rose further than its siblings, from the second fifth of its readings to the last. */
function hasOneAhead(version: readonly FleetProcess[], endMs: TimeMs, least: Bytes): boolean {
  const rises = version
    .filter(
      ({ endedMs, rss }) => (endedMs ?? endMs) >= endMs && rss.values.length >= FEWEST_READINGS,
    )
    .map(({ rss: { values } }) => {
      const fifth = Math.floor(values.length / 5);
      return median(values.slice(-fifth)) - median(values.slice(fifth, 2 * fifth));
    });
  return rises.length >= FEWEST_INSTANCES && Math.max(...rises) - median(rises) > least;
}

function longest(
  processes: readonly FleetProcess[],
  most: number,
  isFirst: (process: FleetProcess) => number = () => 0,
): FleetProcess[] {
  return [...processes]
    .sort((a, b) => isFirst(b) - isFirst(a) || b.rss.times.length - a.rss.times.length)
    .slice(0, most);
}

/**
 * The processes that the agent should look at: none unless the service leaks in a line that is unknown. The odd ones if only
 * they leak; of these the ones with the longest course. A process that soon reaches its limit is left alone.
 */
export function processesToLookAt(
  { processes, window }: ServiceEvidence,
  { leak, suspects, oddInstances, forecast }: FleetDiagnosisJson,
): string[] {
  if (leak === undefined || suspects.length > 0) {
    return [];
  }
  const odd = new Set(oddInstances.map(({ instance }) => instance));
  const isAlone = leak.affectedInstances < leak.runningInstances;
  const dying = new Set(
    forecast
      .filter(({ msToLimit }) => msToLimit > 0 && msToLimit < LEAST_LEFT_MS)
      .map(({ instance }) => instance),
  );
  return processes
    .filter(
      ({ version, endedMs, instance }) =>
        version === leak.version &&
        (endedMs ?? window.endMs) >= window.endMs &&
        !dying.has(instance) &&
        (!isAlone || odd.has(instance)),
    )
    .sort((a, b) => a.startedMs - b.startedMs)
    .slice(0, CANDIDATES)
    .map(({ process }) => process);
}
