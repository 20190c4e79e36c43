/** How the runs under one setting differ from those under plain glibc, and which setting to recommend. */
import { formatBytes } from "../model/base/numbers.js";
import type {
  AllocatorName,
  AllocatorRunJson,
  AllocatorTrialJson,
  ChangeJson,
} from "../model/documents/allocators_document.js";
import { twoSidedT } from "./student_t.js";

type Figure = "peakRssBytes" | "steadyRssBytes" | "cpuMs";

/** A smaller saving is not worth another allocator. */
const LEAST_SAVING = 0.03;
/** More CPU time than this is too high a price for memory. */
const MOST_CPU = 0.1;

/**
 * Relative change of a figure, paired by round: the mean of the logarithms of the ratios, with Student's interval.
 * `settings` are compared with glibc at once, so that each interval is at 1 - 0.05 / settings (Bonferroni).
 * undefined for fewer than two rounds in common.
 */
export function changeOf(
  figure: Figure,
  [runs, plain]: readonly [readonly AllocatorRunJson[], readonly AllocatorRunJson[]],
  settings: number,
): ChangeJson | undefined {
  const ratios = runs.flatMap((run) => {
    const pair = plain.find(({ round }) => round === run.round);
    const ratio = pair === undefined ? Number.NaN : run[figure] / pair[figure];
    return ratio > 0 && Number.isFinite(ratio) ? [Math.log(ratio)] : [];
  });
  const count = ratios.length;
  if (count < 2) {
    return undefined;
  }
  const mean = ratios.reduce((sum, value) => sum + value, 0) / count;
  const variance = ratios.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
  const half = twoSidedT(1 - 0.05 / settings, count - 1) * Math.sqrt(variance / count);
  return {
    value: Math.exp(mean) - 1,
    low: Math.exp(mean - half) - 1,
    high: Math.min(Math.exp(mean + half) - 1, Number.MAX_VALUE),
  };
}

export interface Recommendation {
  readonly best: AllocatorName | null;
  readonly sentence: string;
}

/**
 * Steady RSS decides; a setting is recommended if its whole interval is a saving, at an acceptable cost in CPU time. Of
 * those that save about the same, it is the first.
 */
export function recommend(trials: readonly AllocatorTrialJson[]): Recommendation {
  const plain = trials.find(({ allocator }) => allocator === "glibc");
  const others = trials.filter(
    ({ allocator, loaded, steadyChange }) =>
      allocator !== "glibc" && loaded && steadyChange !== undefined,
  );
  if (plain === undefined || others.length === 0) {
    return { best: null, sentence: "No setting could be compared with glibc." };
  }
  const saving = others.filter(
    ({ steadyChange, cpuChange }) =>
      (steadyChange?.high ?? 0) <= -LEAST_SAVING && (cpuChange?.value ?? 0) <= MOST_CPU,
  );
  const lowest = Math.min(...saving.map(({ steadyRssBytes }) => steadyRssBytes));
  const equals = saving.filter(
    ({ steadyRssBytes }) => steadyRssBytes - lowest <= LEAST_SAVING * plain.steadyRssBytes,
  );
  // The settings of glibc come first: they need no library.
  const [first, ...alike] = equals;
  if (first === undefined) {
    return { best: null, sentence: withoutBest(plain, others) };
  }
  const { steadyChange, cpuChange, title, allocator } = first;
  const cost = cpuChange === undefined ? "" : `, CPU time ${percent(cpuChange)}`;
  const names = alike.map((trial) => trial.title).join("; ");
  return {
    best: allocator,
    sentence:
      `Use ${title}: steady RSS ${formatBytes(first.steadyRssBytes)} instead of ${formatBytes(plain.steadyRssBytes)} (${percent(steadyChange)})${cost}.` +
      (names === "" ? "" : ` About the same saving: ${names}.`),
  };
}

function withoutBest(plain: AllocatorTrialJson, others: readonly AllocatorTrialJson[]): string {
  const bySize = [...others].sort((a, b) => a.steadyRssBytes - b.steadyRssBytes);
  const saves = bySize.find(({ steadyChange }) => (steadyChange?.high ?? 0) <= -LEAST_SAVING);
  if (saves !== undefined) {
    const { title, steadyChange, cpuChange } = saves;
    const memory = `${title} saves memory (${percent(steadyChange)})`;
    return (cpuChange?.low ?? 0) > 0
      ? `Keep glibc: ${memory} but costs CPU time (${percent(cpuChange)}).`
      : `No setting is recommended: ${memory}, but what it costs in CPU time is uncertain (${percent(cpuChange)}); more rounds (--rounds) would narrow the interval.`;
  }
  const mayDiffer = bySize.find(({ steadyChange }) => (steadyChange?.low ?? 0) <= -LEAST_SAVING);
  if (mayDiffer === undefined) {
    return `The allocator makes no difference worth a change: steady RSS stays within ${Math.round(LEAST_SAVING * 100)} % of the ${formatBytes(plain.steadyRssBytes)} under glibc, or rises.`;
  }
  const { title, steadyChange } = mayDiffer;
  return `No difference is proven: ${title} changes steady RSS by ${percent(steadyChange)}; ${(steadyChange?.value ?? 0) < -LEAST_SAVING ? "more rounds (--rounds) would narrow the interval" : "runs differ too much from each other"}.`;
}

/** "-31 %, 95 % interval -33 to -29 %". */
export function percent(change: ChangeJson | undefined): string {
  if (change === undefined) {
    return "not measured";
  }
  const of = (value: number) =>
    value > 10 ? "over +1,000" : `${value > 0 ? "+" : ""}${(value * 100).toFixed(0)}`;
  return `${of(change.value)} %, 95 % interval ${of(change.low)} to ${of(change.high)} %`;
}
