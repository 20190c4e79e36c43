/** One version of a service, judged: all its processes, and the instances that differ from their siblings. */
import type { FleetProcess } from "./fleet_evidence.js";
import { type GroupGrowth, groupGrowth, type Judging } from "./group_growth.js";
import type { Unloaded } from "./load_removal.js";
import { type OddInstance, oddInstances } from "./odd_instances.js";
import { accusedByPrecedent, clearedByPrecedent } from "./precedent.js";
import { withSites } from "./site_growth.js";

/** An odd instance that grows by this factor faster explains the leak. */
const MUCH_FASTER = 4;

export interface JudgedVersion {
  readonly version: string;
  readonly startedMs: number;
  readonly processes: readonly Unloaded[];
  /** Of the processes without the odd ones; null: no readings in the window. */
  readonly growth: GroupGrowth | null;
  readonly odd: readonly OddInstance[];
}

export function isLeaking({ growth, odd }: JudgedVersion): boolean {
  return growth?.shape === "leaking" || odd.length > 0;
}

/** Whether all instances leak, and not a few of them much faster than the others. */
export function leaksEverywhere({ growth, odd }: Pick<JudgedVersion, "growth" | "odd">): boolean {
  const fastest = Math.max(0, ...odd.map((each) => each.growth.rate));
  return growth?.shape === "leaking" && fastest < MUCH_FASTER * growth.rate;
}

/** By version, in the order in which they first started. */
export function versionsOf(processes: readonly Unloaded[]) {
  const groups = new Map<string, Unloaded[]>();
  for (const each of processes) {
    const own = groups.get(each.process.version) ?? [];
    own.push(each);
    groups.set(each.process.version, own);
  }
  return [...groups]
    .map(([version, own]) => ({
      version,
      processes: own,
      startedMs: Math.min(...own.map(({ process }) => process.startedMs)),
    }))
    .sort((a, b) => a.startedMs - b.startedMs);
}

/** A version is judged up to the end of its last process, and against earlier versions, the latest last. */
export function judged(
  version: Omit<JudgedVersion, "growth" | "odd">,
  judging: Judging,
  earlier: readonly JudgedVersion[],
): JudgedVersion {
  const ends = version.processes.map(({ process }) => process.endedMs ?? judging.endMs);
  const own = { ...judging, endMs: Math.min(judging.endMs, Math.max(...ends)) };
  const odd = oddInstances(version.processes, own);
  const names = new Set(odd.map(({ instance }) => instance));
  const others = version.processes.filter(({ process }) => !names.has(process.instance));
  const growth = groupGrowth(others, own);
  const settled = (found: GroupGrowth) =>
    withSites(accusedByPrecedent(clearedByPrecedent(found, earlier), earlier), others, own);
  return { ...version, odd, growth: growth === null ? null : settled(growth) };
}

export function accusedProcesses(version: JudgedVersion): FleetProcess[] {
  return leaksEverywhere(version)
    ? version.processes.map(({ process }) => process)
    : version.odd.flatMap((each) => each.processes.map(({ process }) => process));
}

/** Of the version, or of its fastest odd instance. */
export function rateOf(version: JudgedVersion): GroupGrowth {
  return leaksEverywhere(version)
    ? (version.growth as GroupGrowth)
    : version.odd.map((each) => each.growth).reduce((a, b) => (b.rate > a.rate ? b : a));
}
