/** The distribution of a figure over processes and time, as the answer of `SelectHeatmap`. */
import { badUsage } from "../../model/errors/errors.js";
import {
  type FigureSeries,
  type FigureSeriesQuery,
  STREAM_LABEL,
  type Store,
} from "../../store/index.js";

/** Ranges of values, of equal width, from the smallest to the largest value of the answer. */
const RANGES = 20;
const MOST_VALUES = 2_000_000;
/** Together they identify a process. */
const PROCESS = [STREAM_LABEL, "pid"];

export interface HeatmapGroup {
  /** Values of the labels of `groupBy`. */
  readonly group: readonly string[];
  readonly slots: readonly {
    readonly step: number;
    /** The smallest value of each range that has processes. */
    readonly least: readonly number[];
    readonly counts: readonly number[];
  }[];
  readonly sum: number;
}

/** Throws TidemarkError if too many processes are selected for the step. */
export async function heatmap(store: Store, query: FigureSeriesQuery): Promise<HeatmapGroup[]> {
  const processes = await store.labelSets(PROCESS, query);
  const steps = (query.endMs - query.startMs) / query.stepMs;
  if (processes.length * steps > MOST_VALUES) {
    throw badUsage(
      `${processes.length} processes in ${Math.ceil(steps)} steps are more than a heat map can show`,
      "select fewer processes, or choose a longer step",
    );
  }
  const series = await store.figureSeries({ ...query, groupBy: [...query.groupBy, ...PROCESS] });
  const { least, width } = rangesOf(series);
  const groups = new Map<string, { group: readonly string[]; members: FigureSeries[] }>();
  for (const one of series) {
    const group = one.group.slice(0, query.groupBy.length);
    const key = JSON.stringify(group);
    const found = groups.get(key) ?? { group, members: [] };
    found.members.push(one);
    groups.set(key, found);
  }
  return [...groups.values()].map(({ group, members }) => ({
    group,
    slots: slotsOf(members, least, width),
    sum: members.reduce(
      (sum, { values }) => sum + values.reduce<number>((all, value) => all + (value ?? 0), 0),
      0,
    ),
  }));
}

function rangesOf(series: readonly FigureSeries[]): { least: number; width: number } {
  let least = Number.POSITIVE_INFINITY;
  let most = 0;
  for (const { values } of series) {
    for (const value of values) {
      if (value !== null) {
        least = Math.min(least, value);
        most = Math.max(most, value);
      }
    }
  }
  return most > least ? { least, width: (most - least) / RANGES } : { least: most, width: 1 };
}

function slotsOf(
  members: readonly FigureSeries[],
  least: number,
  width: number,
): HeatmapGroup["slots"] {
  const counts = new Map<number, Map<number, number>>();
  for (const { values } of members) {
    values.forEach((value, step) => {
      if (value !== null) {
        const range = Math.min(RANGES - 1, Math.floor((value - least) / width));
        const ofStep = counts.get(step) ?? new Map<number, number>();
        ofStep.set(range, (ofStep.get(range) ?? 0) + 1);
        counts.set(step, ofStep);
      }
    });
  }
  return [...counts]
    .sort(([a], [b]) => a - b)
    .map(([step, ofStep]) => {
      const ranges = [...ofStep].sort(([a], [b]) => a - b);
      return {
        step,
        least: ranges.map(([range]) => least + range * width),
        counts: ranges.map(([, count]) => count),
      };
    });
}
