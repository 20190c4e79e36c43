/** The flame graph of a window: profiles of many processes, merged by stack. */
import { addAt, float64At, int32At, uint32At } from "../../../model/base/columns.js";
import type { Millis, TimeMs } from "../../../model/base/units.js";
import { Domain, FrameKind } from "../../../model/profile/profile.js";
import { newSiteTable } from "../../../model/profile/site_columns.js";
import { ProfileTablesBuilder } from "../../../model/profile/tables_builder.js";
import type { ProfileQuery, WindowProfile } from "../../interface/store.js";
import type { Window } from "../../interface/window.js";
import { type KeptStack, type KeptSums, type SpanSums, SUMMED } from "../kept/kept_sums.js";
import type { RowReader, Rows } from "../row_database.js";
import { selectionSql, selectionValues } from "./gauge.js";
import { matchersSql } from "./labels.js";
import { type Selected, windowSums } from "./window_sums.js";

/** Class b has ages of 2^(b-1) to 2^b ms. */
function agesOf({ ages }: ProfileQuery): Selected["ages"] {
  return ages === undefined
    ? undefined
    : [
        Math.ceil(Math.log2(Math.max(1, ages.leastMs))) + 1,
        Math.floor(Math.log2(Math.max(1, ages.mostMs))),
      ];
}

/** Of the series `s`. */
export async function conditionOf(
  database: RowReader,
  of: ProfileQuery["of"],
): Promise<Selected["condition"]> {
  return "service" in of
    ? { sql: selectionSql(of), values: selectionValues(of) }
    : await matchersSql(database, of);
}

export async function windowProfile(
  database: RowReader,
  query: ProfileQuery,
): Promise<WindowProfile> {
  const { of } = query;
  const condition = await conditionOf(database, of);
  const selected = {
    condition,
    ages: agesOf(query),
    ofLabels: labelsCondition(query),
    labelSql: query.byLabel === undefined ? "''" : labelSql("$label"),
    service: serviceOf(of),
  };
  const { rows, instances, reported } = await database.sums.use(async () => {
    const spans = await windowSums(database, query, selected);
    const reported = reportedOf(spans);
    const over = query.over === undefined ? query : (reported ?? query);
    const lengthMs = over.endMs - over.startMs;
    return {
      rows: mergedRows(database.sums, spans, lengthMs),
      instances: instancesOf(spans, lengthMs),
      reported,
    };
  });
  const shown = rows.slice(0, query.mostStacks);
  const rest = rows.slice(query.mostStacks);
  const stacks = await framesOfStacks(
    database,
    shown.map(({ stackId }) => stackId),
  );
  return {
    ...profileOf(query, shown, rest, stacks),
    otherStacks: rest.length,
    profiles: rows.length,
    reported,
    instances,
  };
}

/** The value of a label of samples; '' if they do not have it. */
function labelSql(name: string): string {
  return `coalesce(list_extract(l.vals, list_position(l.keys, ${name})), '')`;
}

function labelsCondition({ byLabel, where }: ProfileQuery): Selected["ofLabels"] {
  return {
    sql: where === undefined ? "true" : `${labelSql("$where_name")} = $where_value`,
    values: {
      ...(byLabel === undefined ? {} : { label: byLabel }),
      ...(where === undefined ? {} : { where_name: where.name, where_value: where.value }),
    },
  };
}

/** The service that all selected processes are of. */
function serviceOf(of: ProfileQuery["of"]): string | null {
  if ("service" in of) {
    return of.service;
  }
  const exact = of.find(
    ({ name, operator }) => operator === "=" && (name === "service_name" || name === "service"),
  );
  return exact?.value ?? null;
}

/** Means over a time of live figures, and sums of allocated figures, of one stack and allocator. */
type MergedRow = KeptStack & Readonly<Record<(typeof SUMMED)[number], number>>;

/** The largest first. */
function mergedRows(sums: KeptSums, spans: readonly SpanSums[], lengthMs: Millis): MergedRow[] {
  const places = new Int32Array(sums.stackCount).fill(-1);
  const stacks: number[] = [];
  for (const span of spans) {
    for (const stack of span.stacks) {
      if (places[stack] === -1) {
        places[stack] = stacks.push(stack) - 1;
      }
    }
  }
  const totals = Object.fromEntries(
    SUMMED.map((name) => [name, new Float64Array(stacks.length)]),
  ) as SpanSums["figures"];
  for (const { stacks: ofSpan, figures } of spans) {
    for (const name of SUMMED) {
      const [from, to] = [figures[name], totals[name]];
      for (let at = 0; at < ofSpan.length; at++) {
        addAt(to, int32At(places, uint32At(ofSpan, at)), float64At(from, at));
      }
    }
  }
  return stacks
    .map((stack, at) => ({
      ...sums.stackAt(stack),
      live_bytes: float64At(totals.live_bytes, at) / lengthMs,
      live_objects: float64At(totals.live_objects, at) / lengthMs,
      live_variance: float64At(totals.live_variance, at) / lengthMs,
      allocated_bytes: float64At(totals.allocated_bytes, at),
      allocated_objects: float64At(totals.allocated_objects, at),
    }))
    .filter((row) => row.live_bytes > 0 || row.allocated_bytes > 0)
    .sort(
      (a, b) =>
        b.live_bytes - a.live_bytes ||
        b.allocated_bytes - a.allocated_bytes ||
        (a.stackId < b.stackId ? -1 : a.stackId > b.stackId ? 1 : a.label < b.label ? -1 : 1),
    );
}

/** An instance counts from the first to the last moment at which one of its processes has a profile. */
function instancesOf(spans: readonly SpanSums[], lengthMs: Millis): number {
  const lives = new Map<bigint, readonly [TimeMs, TimeMs]>();
  let ms = 0;
  for (const span of spans) {
    ms += span.mergedMs;
    for (const [root, [from, to]] of span.lives) {
      const [first, last] = lives.get(root) ?? [from, to];
      lives.set(root, [Math.min(first, from), Math.max(last, to)]);
    }
  }
  for (const [from, to] of lives.values()) {
    ms += to - from;
  }
  return ms / lengthMs;
}

const DAY_MS: Millis = 86_400_000;

/**
 * From the first to the last moment at which an instance has a profile. Whole days count from their start to their end, as
 * their merged tiers know no more: the answer must not change when a day is merged.
 */
function reportedOf(spans: readonly SpanSums[]): Window | null {
  let [startMs, endMs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const span of spans) {
    const isEmpty = span.mergedMs === 0 && span.lives.size === 0;
    const isWhole = span.mergedMs > 0 || span.endMs - span.startMs >= DAY_MS;
    const known = isWhole && !isEmpty ? [[span.startMs, span.endMs] as const] : span.lives.values();
    for (const [from, to] of known) {
      startMs = Math.min(startMs, from);
      endMs = Math.max(endMs, to);
    }
  }
  return startMs < endMs ? { startMs, endMs } : null;
}

interface StoredFrame {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly kind: FrameKind;
}

/** By stack id: its frames, leaf first. */
export async function framesOfStacks(
  database: RowReader,
  stackIds: readonly bigint[],
): Promise<Map<bigint, StoredFrame[]>> {
  const ids = [...new Set(stackIds)];
  if (ids.length === 0) {
    return new Map();
  }
  const stacks = await database.query(
    `SELECT stack_id, frame_ids FROM ${database.dictionary("stacks", ids)}`,
  );
  const idsOf = (row: Rows[number]) => (row.frame_ids as unknown as { items: bigint[] }).items;
  const frameIds = [...new Set(stacks.flatMap(idsOf))];
  const frames = await database.query(
    `SELECT frame_id, function, file, line, kind FROM ${database.dictionary("frames", frameIds)}`,
  );
  const byId = new Map<bigint, StoredFrame>(
    frames.map((row) => [
      row.frame_id as bigint,
      {
        name: String(row.function),
        file: String(row.file),
        line: Number(row.line),
        kind: FrameKind[String(row.kind) as keyof typeof FrameKind],
      },
    ]),
  );
  return new Map(
    stacks.map((row) => [row.stack_id as bigint, idsOf(row).flatMap((id) => byId.get(id) ?? [])]),
  );
}

function profileOf(
  { startMs, endMs, byLabel = "" }: ProfileQuery,
  shown: readonly MergedRow[],
  rest: readonly MergedRow[],
  stacks: ReadonlyMap<bigint, StoredFrame[]>,
): Pick<WindowProfile, "tables" | "snapshot"> {
  const builder = new ProfileTablesBuilder();
  const about = { pid: 0, parentPid: 0, command: [], python: "", startedMs: startMs };
  const process = builder.addProcess({ ...about, periodBytes: 0 });
  builder.addThread({ process, tid: 0, name: "", isMain: true });
  const sites = newSiteTable(shown.length + (rest.length > 0 ? 1 : 0), 1);
  shown.forEach((row, at) => {
    const frames = stacks.get(row.stackId) ?? [];
    sites.stack[at] = frames.reduceRight(
      (parent, { name, file, line, kind }) =>
        builder.stack(
          parent,
          builder.frame(builder.string(name), builder.string(file), line, 0, kind, 0),
        ),
      0,
    );
    sites.domain[at] = Domain[row.domain as keyof typeof Domain] ?? Domain.python;
    if (row.label !== "") {
      sites.label[at] = builder.label(0, builder.string(byLabel), builder.string(row.label));
    }
    addFigures(sites, at, row);
  });
  if (rest.length > 0) {
    const at = shown.length;
    const name = builder.string(`other: ${rest.length} stacks`);
    sites.stack[at] = builder.stack(
      0,
      builder.frame(name, builder.string(""), 0, 0, FrameKind.mark, 0),
    );
    for (const row of rest) {
      addFigures(sites, at, row);
    }
  }
  const snapshot = {
    timeMs: endMs,
    durationMs: endMs - startMs,
    sites,
    files: newSiteTable(0, 1),
    copies: newSiteTable(0, 1),
    cohorts: [endMs],
    peakMs: [0],
  };
  return { tables: builder.tables(), snapshot };
}

const FIGURES = [
  ["liveBytes", "live_bytes"],
  ["liveObjects", "live_objects"],
  ["liveVariance", "live_variance"],
  ["allocatedBytes", "allocated_bytes"],
  ["allocatedObjects", "allocated_objects"],
  ["cohortBytes", "live_bytes"],
] as const;

function addFigures(sites: ReturnType<typeof newSiteTable>, at: number, row: MergedRow): void {
  for (const [column, name] of FIGURES) {
    sites[column][at] = (sites[column][at] ?? 0) + Math.max(0, row[name]);
  }
}
