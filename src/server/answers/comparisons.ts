/** The differences between two selections of profiles, and the growth within a window. */
import { float64At, itemAt, uint8At, uint32At } from "../../model/base/columns.js";
import type { Millis } from "../../model/base/units.js";
import type {
  DiffSideJson,
  FleetDiffJson,
  GrowingJson,
  StackFrameJson,
} from "../../model/documents/fleet_document.js";
import { FrameKind, type ProfileTables } from "../../model/profile/profile.js";
import type { DiffFigure, DiffScale } from "../../model/wire/services.js";
import {
  type LabelMatcher,
  type Selection,
  STREAM_LABEL,
  type Store,
  type Window,
  type WindowProfile,
} from "../../store/index.js";
import { seriesMatchers } from "../grafana/querier.js";
import { coverageLimits, coverageOf } from "./coverage.js";

/** Most stacks of one side; the others are in "other". */
const MOST_STACKS = 100_000;
const MS_PER_HOUR: Millis = 3_600_000;
/** A time after every stored day. */
const FAR_MS = Date.UTC(9999, 0, 1);
const SOURCE_LABEL = "tidemark.source";
const KIND_NAMES = Object.keys(FrameKind) as (keyof typeof FrameKind)[];

export interface DiffSide {
  /** `{service_name="shop", version="41"}` */
  readonly selector: string;
  readonly window: Window;
}

export async function fleetDiff(
  store: Store,
  sides: readonly [DiffSide, DiffSide],
  { figure, per, top }: { figure: DiffFigure; per: DiffScale; top: number },
): Promise<FleetDiffJson> {
  const rows = new StackRows();
  const about: DiffSideJson[] = [];
  const columns: SideColumn[] = [];
  const limits: string[] = [];
  for (const { selector, window } of sides) {
    const of = seriesMatchers([selector]);
    const profile = await store.profile({
      ...{ ...window, of, mostStacks: MOST_STACKS, over: "reported" },
    });
    const { instances } = profile;
    const column = rows.add(profile, figure, per === "instance" && instances > 0 ? instances : 1);
    columns.push(column);
    const isUnknown = profile.reported === null && !(await isKnown(store, of));
    about.push({
      ...{ selector, ...window, instances, total: column.total },
      ...(isUnknown ? { isUnknown } : {}),
    });
    if (per === "none") {
      const coverage = await coverageOf(store, of, profile);
      limits.push(...coverageLimits(coverage).map((sentence) => `${selector}: ${sentence}`));
    }
    if (profile.profiles === 0) {
      limits.push(`No process that ${selector} selects has a profile in its window.`);
    }
  }
  const [left, right] = columns as [SideColumn, SideColumn];
  const all = rows.numbers.map((row) => {
    const values = { left: left.at(row), right: right.at(row) };
    return { row, ...values, change: values.right - values.left };
  });
  all.sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
  const other = { stacks: left.others + right.others, left: left.rest, right: right.rest };
  for (const omitted of all.slice(top)) {
    other.stacks += 1;
    other.left += omitted.left;
    other.right += omitted.right;
  }
  return {
    schema: "tidemark.fleet_diff/1",
    figure,
    per,
    left: about[0] as DiffSideJson,
    right: about[1] as DiffSideJson,
    stacks: all
      .slice(0, top)
      .map(({ row, ...values }) => ({ stack: rows.framesOf(row), ...values })),
    other: { ...other, change: other.right - other.left },
    limits,
  };
}

/** Whether any stored process is selected, whenever it ran. */
async function isKnown(store: Store, of: readonly LabelMatcher[]): Promise<boolean> {
  const ever = { of, startMs: 0, endMs: FAR_MS };
  return (
    (await store.running(ever)) > 0 ||
    (await store.profile({ ...ever, mostStacks: 1 })).reported !== null
  );
}

/**
 * Compares the first quarter of the time in which the processes reported with its last one. Bytes in the last quarter that are older than a tenth of
 * that time and younger than three quarters of it were allocated within it and survived.
 */
export async function growing(
  store: Store,
  selection: Selection,
  window: Window,
  top: number,
): Promise<GrowingJson> {
  // Before its first profile, a service does not have 0 B: nothing is known.
  const { reported } = await store.profile({ ...window, of: selection, mostStacks: 1 });
  const { startMs, endMs } = reported ?? window;
  const lengthMs = endMs - startMs;
  const early = { startMs, endMs: startMs + lengthMs / 4 };
  const late = { startMs: endMs - lengthMs / 4, endMs };
  const query = { of: selection, mostStacks: MOST_STACKS, over: "reported" } as const;
  const ages = { leastMs: lengthMs / 10, mostMs: (lengthMs * 3) / 4 };
  const rows = new StackRows();
  const before = rows.add(await store.profile({ ...early, ...query }), "liveBytes", 1);
  const lateProfile = await store.profile({ ...late, ...query });
  const coverage = await coverageOf(store, selection, lateProfile);
  const after = rows.add(lateProfile, "liveBytes", 1);
  const survived = rows.add(await store.profile({ ...late, ...query, ages }), "liveBytes", 1);
  const sources = await store.labelValues(SOURCE_LABEL, {
    ...window,
    matchers: matchersOf(selection),
  });
  const perHour = MS_PER_HOUR / ((lengthMs * 3) / 4);
  const figuresOf = (earlyBytes: number, lateBytes: number) => ({
    earlyBytes,
    lateBytes,
    growthBytesPerHour: (lateBytes - earlyBytes) * perHour,
  });
  const all = rows.numbers
    .map((row) => ({ row, ...figuresOf(before.at(row), after.at(row)) }))
    .sort((a, b) => b.growthBytesPerHour - a.growthBytesPerHour);
  const rest = all.slice(top);
  const restOf = (column: SideColumn) =>
    rest.reduce((sum, { row }) => sum + column.at(row), column.rest);
  return {
    schema: "tidemark.growing/1",
    service: selection.service,
    window: { ...window },
    early,
    late,
    coverage,
    ...figuresOf(before.total, after.total),
    stacks: all.slice(0, top).map(({ row, ...figures }) => ({
      stack: rows.framesOf(row),
      ...figures,
      ...(sources.length > 0 ? {} : { survivedBytes: survived.at(row) }),
    })),
    other: {
      stacks: rest.length + before.others + after.others,
      ...figuresOf(restOf(before), restOf(after)),
    },
    limits: [
      ...coverageLimits(coverage),
      ...(before.total === 0 && after.total === 0
        ? [
            sources.length === 0
              ? "No process has a profile with live bytes in this window."
              : "No process has profiles with live bytes over this window. An imported file describes a single moment: compare two with tidemark diff.",
          ]
        : []),
      ...(sources.length === 0
        ? []
        : [`Ages are unknown: profiles of ${sources.join(" and ")} have none.`]),
    ],
  };
}

function matchersOf({ service, version, stream }: Selection): LabelMatcher[] {
  const equal = (name: string, value: string | undefined): LabelMatcher[] =>
    value === undefined ? [] : [{ name, operator: "=", value }];
  return [
    ...equal("service_name", service),
    ...equal("version", version),
    ...equal(STREAM_LABEL, stream),
  ];
}

export function frameJson(tables: ProfileTables, frame: number): StackFrameJson {
  return {
    function: itemAt(tables.strings, uint32At(tables.frames.function, frame)),
    file: itemAt(tables.strings, uint32At(tables.frames.file, frame)),
    line: uint32At(tables.frames.line, frame),
    kind: KIND_NAMES[uint8At(tables.frames.kind, frame)] ?? "mark",
  };
}

/** One figure of one side, by stack. */
class SideColumn {
  readonly #values = new Map<number, number>();
  total = 0;
  /** The figure of the stacks that the store left out. */
  rest = 0;
  others = 0;

  add(row: number, value: number): void {
    this.#values.set(row, this.at(row) + value);
    this.total += value;
  }

  addRest(stacks: number, value: number): void {
    this.others += stacks;
    this.rest += value;
    this.total += value;
  }

  at(row: number): number {
    return this.#values.get(row) ?? 0;
  }
}

/** Stacks of several profiles, each once. */
class StackRows {
  /** Nodes of a tree: stack by its caller's node and its own frame. 0: the root. */
  readonly #nodes = new Map<string, number>();
  readonly #parents = [0];
  readonly #frames: (StackFrameJson | null)[] = [null];
  readonly #frameIds = new Map<string, number>();
  /** Nodes at which a profile has a site. */
  readonly #sites = new Set<number>();

  /** The values of a profile, divided by `divisor`. */
  add(
    { tables, snapshot, otherStacks }: WindowProfile,
    figure: DiffFigure,
    divisor: number,
  ): SideColumn {
    const nodes = this.#nodesOf(tables);
    const column = new SideColumn();
    const { sites } = snapshot;
    for (let site = 0; site < sites.length; site++) {
      const value = float64At(sites[figure], site) / divisor;
      if (otherStacks > 0 && site === sites.length - 1) {
        column.addRest(otherStacks, value);
      } else if (value > 0) {
        const node = uint32At(nodes, uint32At(sites.stack, site));
        this.#sites.add(node);
        column.add(node, value);
      }
    }
    return column;
  }

  get numbers(): number[] {
    return [...this.#sites];
  }

  /** Leaf first. */
  framesOf(row: number): StackFrameJson[] {
    const frames: StackFrameJson[] = [];
    for (let node = row; node !== 0; node = this.#parents[node] ?? 0) {
      frames.push(this.#frames[node] as StackFrameJson);
    }
    return frames;
  }

  #nodesOf(tables: ProfileTables): Uint32Array {
    const frames = Array.from({ length: tables.frames.length }, (_, row) => {
      const frame = frameJson(tables, row);
      const key = `${frame.kind}\n${frame.line}\n${frame.file}\n${frame.function}`;
      const id = this.#frameIds.get(key) ?? this.#frameIds.size;
      this.#frameIds.set(key, id);
      return { frame, id };
    });
    const { stacks } = tables;
    const nodes = new Uint32Array(stacks.length);
    for (let stack = 1; stack < stacks.length; stack++) {
      const parent = uint32At(nodes, uint32At(stacks.parent, stack));
      const { frame, id } = itemAt(frames, uint32At(stacks.frame, stack));
      const key = `${parent},${id}`;
      let node = this.#nodes.get(key);
      if (node === undefined) {
        node = this.#parents.push(parent) - 1;
        this.#frames.push(frame);
        this.#nodes.set(key, node);
      }
      nodes[stack] = node;
    }
    return nodes;
  }
}
