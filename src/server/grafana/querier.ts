/** Pyroscope's query API over the store: the requests of Grafana's data source, Profiles Drilldown and profilecli. */
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { badUsage } from "../../model/errors/errors.js";
import type {
  FigureSeriesQuery,
  LabelMatcher,
  Store,
  Window,
  WindowProfile,
} from "../../store/index.js";
import { flamebearer, flamebearerDiff, USUAL_NODES } from "./flamebearer.js";
import { heatmap } from "./heatmap.js";
import { pprofMessage } from "./merged_profile.js";
import { MEMORY_TYPES, memoryType, splitMatchers } from "./profile_types.js";
import {
  HeatmapQueryType,
  type QuerierService,
  type SelectHeatmapRequest,
  type SelectMergeStacktracesRequest,
  SelectMergeStacktracesRequestSchema,
  type SelectSeriesRequest,
} from "./querier_pb.js";
import { parseSelector } from "./selector.js";

const MS_PER_HOUR = 3_600_000;
const LONGEST_WINDOW_MS = 732 * 86_400_000;
const LATEST_MS = Date.UTC(2200, 0, 1);
const MOST_STEPS = 11_000;
const MOST_NODES = 65_536;
const MOST_GROUPS = 10;
/** Most stacks of one flame graph; the others are one site, "other". */
const MOST_STACKS = 100_000;
const TYPE_LABEL = "__profile_type__";

export function querier(store: Store): Partial<ServiceImpl<typeof QuerierService>> {
  return {
    async profileTypes({ start, end }) {
      const types = await typesIn(store, windowOf(start, end), []);
      return {
        profileTypes: types.map(({ id, sampleType, unit }) => ({
          ID: id,
          name: "memory",
          sampleType,
          sampleUnit: unit,
          periodType: "space",
          periodUnit: "bytes",
        })),
      };
    },
    async labelNames({ matchers, start, end }) {
      const window = windowOf(start, end);
      const names = await store.labelNames({ ...window, matchers: seriesMatchers(matchers) });
      return { names: names.length === 0 ? [] : [TYPE_LABEL, ...names] };
    },
    async labelValues({ name, matchers, start, end }) {
      const window = windowOf(start, end);
      const of = { ...window, matchers: seriesMatchers(matchers) };
      const names =
        name === TYPE_LABEL
          ? (await typesIn(store, window, of.matchers)).map(({ id }) => id)
          : await store.labelValues(name, of);
      return { names };
    },
    async series({ matchers, labelNames, start, end }) {
      const { types, matchers: rest } = splitMatchers(matchers.flatMap(parseSelector));
      const of = { ...windowOf(start, end), matchers: rest };
      const asked = labelNames.length > 0 ? labelNames : await store.labelNames(of);
      const names = asked.filter((name) => !name.startsWith("__"));
      bounded(names.length, 100, "labels");
      const sets = await store.labelSets(names, of);
      const ids = asked.includes(TYPE_LABEL) ? types.map(({ id }) => id) : [null];
      return {
        labelsSet: sets.flatMap((values) =>
          ids.map((id) => ({
            labels: [
              ...(id === null ? [] : [{ name: TYPE_LABEL, value: id }]),
              ...labelsOf(names, values),
            ],
          })),
        ),
      };
    },
    async selectSeries(request) {
      const query = figureQuery(request);
      const all = await store.figureSeries(query);
      const series = all.map(({ group, values }) => ({
        labels: labelsOf(query.groupBy, group),
        points: values.flatMap((value, at) =>
          value === null ? [] : [{ value, timestamp: endOfStep(query, at) }],
        ),
        sum: values.reduce<number>((sum, value) => sum + (value ?? 0), 0),
      }));
      return { series: largestFirst(series, request.limit) };
    },
    async selectHeatmap(request) {
      const query = figureQuery(request);
      // Processes are distributed, not spans: there are none.
      const groups = request.queryType === HeatmapQueryType.SPAN ? [] : await heatmap(store, query);
      const series = groups.map(({ group, slots, sum }) => ({
        labels: labelsOf(query.groupBy, group),
        slots: slots.map(({ step, least, counts }) => ({
          timestamp: endOfStep(query, step),
          yMin: [...least],
          counts: [...counts],
        })),
        sum,
      }));
      return { series: largestFirst(series, request.limit) };
    },
    async selectMergeProfile(request) {
      const type = memoryType(request.profileTypeID);
      const asked = Number(request.maxNodes ?? 0n);
      const most = asked <= 0 ? MOST_STACKS : Math.min(asked, MOST_STACKS);
      const profile = await merged(store, request, most);
      return pprofMessage(profile, type, windowOf(request.start, request.end));
    },
    async selectMergeStacktraces(request) {
      const { figure } = memoryType(request.profileTypeID);
      const graph = flamebearer(await merged(store, request), figure, nodesOf(request));
      return { flamegraph: { ...counted(graph), total: BigInt(graph.total) } };
    },
    async diff({ left, right }) {
      const sides = [left, right].map(
        (side) => side ?? create(SelectMergeStacktracesRequestSchema),
      ) as [SelectMergeStacktracesRequest, SelectMergeStacktracesRequest];
      const { figure } = memoryType(sides[0].profileTypeID);
      const [a, b] = [await merged(store, sides[0]), await merged(store, sides[1])];
      const graph = flamebearerDiff(a, b, figure, nodesOf(sides[0]));
      return {
        flamegraph: {
          ...counted(graph),
          total: BigInt(graph.total),
          leftTicks: BigInt(graph.leftTicks),
          rightTicks: BigInt(graph.rightTicks),
        },
      };
    },
    async getProfileStats() {
      const { oldestMs } = await store.use();
      return {
        dataIngested: oldestMs !== null,
        oldestProfileTime: BigInt(oldestMs ?? 0),
        newestProfileTime: BigInt(oldestMs === null ? 0 : Date.now()),
      };
    },
  };
}

export function merged(
  store: Store,
  {
    labelSelector,
    start,
    end,
  }: Pick<SelectMergeStacktracesRequest, "labelSelector" | "start" | "end">,
  mostStacks = MOST_STACKS,
): Promise<WindowProfile> {
  const of = seriesMatchers([labelSelector]);
  return store.profile({ ...windowOf(start, end), of, mostStacks });
}

/** The arguments of {@link QuerierService} for a figure over time. Throws TidemarkError. */
function figureQuery({
  profileTypeID,
  labelSelector,
  start,
  end,
  groupBy,
  step,
}: SelectSeriesRequest | SelectHeatmapRequest): FigureSeriesQuery {
  const { figure } = memoryType(profileTypeID);
  const window = windowOf(start, end);
  // A step longer than the window is the whole window.
  const stepMs = Math.min(Math.round(step * 1000), window.endMs - window.startMs);
  if (!(stepMs >= 1) || (window.endMs - window.startMs) / stepMs > MOST_STEPS) {
    throw badUsage(`the step does not divide the window into 1 to ${MOST_STEPS} parts`, "");
  }
  bounded(groupBy.length, MOST_GROUPS, "labels to group by");
  const matchers = seriesMatchers([labelSelector]);
  const names = groupBy.filter((name) => !name.startsWith("__"));
  return { ...window, matchers, figure, groupBy: names, stepMs };
}

function endOfStep({ startMs, endMs, stepMs }: FigureSeriesQuery, step: number): bigint {
  return BigInt(Math.round(Math.min(startMs + (step + 1) * stepMs, endMs)));
}

function largestFirst<Row extends { readonly sum: number }>(
  rows: readonly Row[],
  limit: bigint | undefined,
): Row[] {
  const most = limit === undefined || limit <= 0n ? rows.length : Number(limit);
  return [...rows].sort((a, b) => b.sum - a.sum).slice(0, most);
}

export function seriesMatchers(selectors: readonly string[]): readonly LabelMatcher[] {
  return splitMatchers(selectors.flatMap(parseSelector)).matchers;
}

function nodesOf({ maxNodes }: SelectMergeStacktracesRequest): number {
  const asked = Number(maxNodes ?? 0n);
  return asked <= 0 ? USUAL_NODES : Math.min(asked, MOST_NODES);
}

function counted({ names, levels, maxSelf }: ReturnType<typeof flamebearer>) {
  return {
    names: [...names],
    levels: levels.map((level) => ({ values: level.map(BigInt) })),
    maxSelf: BigInt(maxSelf),
  };
}

async function typesIn(store: Store, window: Window, matchers: readonly LabelMatcher[]) {
  const names = await store.labelNames({ ...window, matchers });
  return names.length === 0 ? [] : MEMORY_TYPES;
}

function labelsOf(names: readonly string[], values: readonly string[]) {
  return names.flatMap((name, at) => {
    const value = values[at] ?? "";
    return value === "" ? [] : [{ name, value }];
  });
}

/** ms since 1970; without both, the last hour. Throws TidemarkError. */
export function windowOf(start: bigint, end: bigint): Window {
  const endMs = end === 0n ? Date.now() : Number(end);
  const startMs = start === 0n && end === 0n ? endMs - MS_PER_HOUR : Number(start);
  if (!(startMs >= 0 && startMs < endMs && endMs <= LATEST_MS)) {
    throw badUsage("the window ends before it begins", "start and end are ms since 1970");
  }
  if (endMs - startMs > LONGEST_WINDOW_MS) {
    throw badUsage("the window is longer than two years", "ask for a shorter one");
  }
  return { startMs, endMs };
}

function bounded(count: number, most: number, what: string): void {
  if (count > most) {
    throw badUsage(`there are more than ${most} ${what}`, "");
  }
}
