/** Versions as the instances that leak alone lived through them, so that their siblings do not hide since when they leak. */
import { groupGrowth, type Judging } from "./growth/group_growth.js";
import { endOf, type JudgedVersion, leaksEverywhere } from "./judged_version.js";

/** The same versions, if all instances of the accused one leak. Versions in which none of them lived have no growth. */
export function ofOddInstances(
  versions: readonly JudgedVersion[],
  accused: JudgedVersion,
  judging: Omit<Judging, "before">,
): readonly JudgedVersion[] {
  if (leaksEverywhere(accused)) {
    return versions;
  }
  const names = new Set(accused.odd.map(({ instance }) => instance));
  return versions.map((version) => {
    const odd = version.odd.filter(({ instance }) => names.has(instance));
    const processes = version.processes.filter(({ process }) => names.has(process.instance));
    const endMs = endOf({ processes }, judging.endMs);
    const alone = { ...judging, before: [], isLoadKnown: true, loadBytes: 0, endMs };
    const seen = processes.length === 0 ? null : groupGrowth(processes, alone);
    return { ...version, processes, growth: odd[0]?.growth ?? seen, odd: [] };
  });
}
