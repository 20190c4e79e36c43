/**
 * Versions that were deployed within a day or two of each other, each too young to decide:
 *
 *   41  ▁▂▃▄▅▆       ended at the next deploy: undecided
 *   42        ▁▂▃▄▅▆      rises alike: undecided
 *   43              ▁▂▃▄     together, they are judged as one version whose processes are restarted every day
 */
import type { Unloaded } from "./curves/load_removal.js";
import type { GroupGrowth, Judging } from "./growth/group_growth.js";
import { isPaceOf, slopesAtSameAges } from "./growth/precedent.js";
import { type JudgedVersion, judged } from "./judged_version.js";

/** With the growth of all of them for each of the last versions that are undecided and rise alike, if together they leak. */
export function withAlike(
  versions: readonly JudgedVersion[],
  judging: Omit<Judging, "before">,
): readonly JudgedVersion[] {
  const newest = versions.at(-1);
  if (newest === undefined || !isOpen(newest)) {
    return versions;
  }
  const from =
    versions.slice(0, -1).findLastIndex((each) => !isOpen(each) || !isAlike(each, newest)) + 1;
  const alike = versions.slice(from);
  if (alike.length < 2) {
    return versions;
  }
  const whole = judged(
    {
      version: newest.version,
      startedMs: Math.min(...alike.map(({ startedMs }) => startedMs)),
      processes: alike.flatMap(({ processes }) => processes),
    },
    judging,
    versions.slice(0, from),
  );
  const { growth } = whole;
  return growth?.shape === "leaking" && whole.odd.length === 0
    ? versions.map((each, at) => (at < from ? each : { ...each, growth }))
    : versions;
}

function isOpen({ growth, odd }: JudgedVersion): boolean {
  return odd.length === 0 && growth?.shape === "undecided";
}

/** Whether both rise at about the same pace up to the age that both reached. */
function isAlike(a: JudgedVersion, b: JudgedVersion): boolean {
  const slopes = slopesOf(a.growth, b.processes) ?? slopesOf(b.growth, a.processes);
  return slopes !== null && isPaceOf(slopes.own, slopes.other);
}

function slopesOf(growth: GroupGrowth | null, others: readonly Unloaded[]) {
  return growth && slopesAtSameAges(growth.curve, others);
}
