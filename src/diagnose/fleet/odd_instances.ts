/** Instances that grow unlike their siblings: one shard, one rank, one host. */
import { medianOf } from "../series/medians.js";
import { median, theilSen } from "../series/trend.js";
import { ageCurve } from "./age_curve.js";
import { type GroupGrowth, groupGrowth, type Judging, WINDOWS_MS } from "./group_growth.js";
import type { Unloaded } from "./load_removal.js";

/** Distance from the siblings' median in robust standard deviations. */
const FAR = 5;
const FEWEST_SIBLINGS = 3;
/** Odd ones are a minority. */
const MOST_SHARE = 0.4;

export interface OddInstance {
  readonly instance: string;
  readonly growth: GroupGrowth;
  readonly processes: readonly Unloaded[];
}

/** Only instances that leak; one whose level differs does not grow. */
export function oddInstances(
  processes: readonly Unloaded[],
  judging: Judging,
): readonly OddInstance[] {
  const instances = new Map<string, Unloaded[]>();
  for (const each of processes) {
    instances.set(each.process.instance, [...(instances.get(each.process.instance) ?? []), each]);
  }
  if (instances.size < FEWEST_SIBLINGS) {
    return [];
  }
  const rates = [...instances].flatMap(([instance, own]) => {
    const window = { startMs: judging.endMs - (WINDOWS_MS[0] as number), endMs: judging.endMs };
    const curve = ageCurve(own, window);
    return curve === null || curve.times.length < 8
      ? []
      : [{ instance, own, rate: theilSen(...thinned(curve.times, curve.values)).slope }];
  });
  const middle = median(rates.map(({ rate }) => rate));
  const spread = 1.4826 * median(rates.map(({ rate }) => Math.abs(rate - middle)));
  const far = rates.filter(({ rate }) => rate - middle > FAR * spread);
  if (far.length > MOST_SHARE * instances.size) {
    return [];
  }
  return far.flatMap(({ instance, own }) => {
    const growth = groupGrowth(own, judging);
    return growth?.shape === "leaking" && growth.low > middle + 2 * spread
      ? [{ instance, growth, processes: own }]
      : [];
  });
}

const MOST_POINTS = 32;

function thinned(times: readonly number[], values: readonly number[]): [number[], number[]] {
  const size = Math.ceil(times.length / MOST_POINTS);
  const groups = Array.from({ length: Math.ceil(times.length / size) }, (_, i) => i * size);
  return [
    groups.map((at) => medianOf(times, at, Math.min(times.length, at + size))),
    groups.map((at) => medianOf(values, at, Math.min(times.length, at + size))),
  ];
}
