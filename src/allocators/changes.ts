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

/** To which figures are rounded: the kernel's clock tick in ms, a page in bytes. */
const STEP: Readonly<Record<Figure, number>> = {
  cpuMs: 10,
  peakRssBytes: 4_096,
  steadyRssBytes: 4_096,
};
/** A smaller saving is not worth another allocator. */
const LEAST_SAVING = 0.03;
/** More CPU time than this is too high a price for memory. */
const MOST_CPU = 0.1;

/**
 * Relative change of a figure, paired by round: the mean of the logarithms of the ratios, with Student's interval.
 * `comparisons` are made: of several settings, some repeatedly as rounds are added. Each interval is therefore at
 * 1 - 0.05 / comparisons (Bonferroni). undefined for fewer than two rounds in common.
 */
export function changeOf(
  figure: Figure,
  [runs, plain]: readonly [readonly AllocatorRunJson[], readonly AllocatorRunJson[]],
  comparisons: number,
): ChangeJson | undefined {
  let rounding = 0;
  const ratios = runs.flatMap((run) => {
    const pair = plain.find(({ round }) => round === run.round);
    const ratio = pair === undefined ? Number.NaN : run[figure] / pair[figure];
    if (pair === undefined || !(ratio > 0 && Number.isFinite(ratio))) {
      return [];
    }
    rounding += STEP[figure] ** 2 * (run[figure] ** -2 + pair[figure] ** -2);
    return [Math.log(ratio)];
  });
  const count = ratios.length;
  if (count < 2) {
    return undefined;
  }
  const mean = ratios.reduce((sum, value) => sum + value, 0) / count;
  const spread = ratios.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
  // The figures are rounded, so that a few may be equal by chance.
  const variance = Math.max(spread, rounding / count / 12);
  const half = twoSidedT(1 - 0.05 / comparisons, count - 1) * Math.sqrt(variance / count);
  return {
    value: Math.exp(mean) - 1,
    low: Math.exp(mean - half) - 1,
    high: Math.min(Math.exp(mean + half) - 1, Number.MAX_VALUE),
  };
}

/** Whether it is proven that a setting saves memory worth a change, and at what cost in CPU time; or that it does not. */
export function isDecided({ steadyChange, cpuChange }: AllocatorTrialJson): boolean {
  if (steadyChange === undefined || cpuChange === undefined) {
    return false;
  }
  return isSaving(steadyChange)
    ? cpuChange.high <= MOST_CPU || cpuChange.low > MOST_CPU
    : steadyChange.low > -LEAST_SAVING;
}

const isSaving = (change: ChangeJson | undefined) => (change?.high ?? 0) <= -LEAST_SAVING;

export interface Recommendation {
  readonly best: AllocatorName | null;
  readonly sentence: string;
}

/**
 * Steady RSS decides: a setting is recommended if its whole interval is a saving, unless it is proven to cost too much
 * CPU time. Of those that save about the same, it is the first.
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
    ({ steadyChange, cpuChange }) => isSaving(steadyChange) && (cpuChange?.low ?? 0) <= MOST_CPU,
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
  const { steadyChange, cpuChange, allocator } = first;
  const names = alike.map((trial) => trial.allocator).join(", ");
  return {
    best: allocator,
    sentence:
      `Use ${nameOf(first)}: steady RSS ${formatBytes(first.steadyRssBytes)} instead of ${formatBytes(plain.steadyRssBytes)} (${percent(steadyChange)}). ` +
      costSentence(cpuChange) +
      (names === "" ? "" : ` About the same saving: ${names}.`),
  };
}

/** "trim (glibc, trimmed every second)", "jemalloc". */
function nameOf({ allocator, title }: AllocatorTrialJson): string {
  return allocator === title ? allocator : `${allocator} (${title})`;
}

function costSentence(change: ChangeJson | undefined): string {
  if (change === undefined) {
    return "CPU time was not measured.";
  }
  if (change.low > 0 || change.high < 0) {
    return `CPU time changes by ${percent(change)}.`;
  }
  return change.high <= MOST_CPU
    ? `CPU time stays about the same (${percent(change)}).`
    : `Its effect on CPU time is smaller than the differences between runs (${percent(change)}).`;
}

function withoutBest(plain: AllocatorTrialJson, others: readonly AllocatorTrialJson[]): string {
  const bySize = [...others].sort((a, b) => a.steadyRssBytes - b.steadyRssBytes);
  const saves = bySize.find(({ steadyChange }) => isSaving(steadyChange));
  if (saves !== undefined) {
    const { steadyChange, cpuChange } = saves;
    return `Keep glibc: ${nameOf(saves)} saves memory (${percent(steadyChange)}) but costs CPU time (${percent(cpuChange)}).`;
  }
  const least = `${Math.round(LEAST_SAVING * 100)} %`;
  const may = bySize
    .filter(({ steadyChange }) => (steadyChange?.low ?? 0) <= -LEAST_SAVING)
    .sort((a, b) => (a.steadyChange?.value ?? 0) - (b.steadyChange?.value ?? 0))[0];
  if (may === undefined) {
    return `Keep glibc: the allocator makes no difference worth a change. No setting lowers steady RSS, ${formatBytes(plain.steadyRssBytes)}, by ${least} or more.`;
  }
  const { steadyChange } = may;
  return (steadyChange?.value ?? 0) > -LEAST_SAVING
    ? `Keep glibc: no setting makes a measurable saving. Steady RSS under ${nameOf(may)} varies from run to run (${percent(steadyChange)}).`
    : `Keep glibc, or measure again: ${nameOf(may)} may lower steady RSS (${percent(steadyChange)}), but the runs differ too much to be sure. More rounds (--rounds), or a load that does the same in each run, would narrow the interval.`;
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
