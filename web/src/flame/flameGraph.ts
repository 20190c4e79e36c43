/** Converts snapshots and choices to what the canvas draws: the tree, its values, its colours. */
import { float64At, uint8At, uint32At } from "../../../src/model/base/columns.js";
import {
  type CallTree,
  calleesBelow,
  callersBelow,
  mainDomains,
  ownFigures,
  type SelectedSites,
  stackWeights,
  withDescendants,
} from "../../../src/model/profile/call_tree.js";
import { FrameKind, type ProfileTables } from "../../../src/model/profile/profile.js";
import type { Choices, ColourMode } from "../choices/choices.js";
import { type FlameLayout, layOut } from "./layout.js";
import { DIFF_BASE, DIFF_STEPS, FILE_BASE, FILE_HUES, KINDS, SHADES } from "./palette.js";

export interface FlameGraph {
  readonly graph: CallTree;
  readonly layout: FlameLayout;
  /** Value of each node including its descendants, in units of the chosen value. */
  readonly total: Float64Array;
  readonly own: Float64Array;
  /** The same for the earlier snapshot; null without a comparison. */
  readonly totalBefore: Float64Array | null;
  /** Variance of `total`'s bytes, bytes squared; null for objects. */
  readonly variance: Float64Array | null;
  /** For each node: the allocator that most of its bytes come from. */
  readonly domain: Uint8Array;
  /** The value of the whole width. */
  readonly width: number;
}

const VARIANCES = {
  liveBytes: "liveVariance",
  peakBytes: "peakVariance",
  allocatedBytes: "allocatedVariance",
} as const;

interface ComparedSites {
  readonly after: SelectedSites;
  /** null without a comparison. */
  readonly before: SelectedSites | null;
}

type FlameChoices = Pick<Choices, "value" | "reversed" | "differenceWidth">;

export function buildFlameGraph(
  tables: ProfileTables,
  { after, before }: ComparedSites,
  { value, reversed, differenceWidth }: FlameChoices,
): FlameGraph {
  // Includes stacks whose chosen value is zero, because a node's details show all values.
  const weights = stackWeights(tables, before ? [after, before] : [after]);
  const graph = reversed ? callersBelow(tables, weights) : calleesBelow(tables, weights);
  const own = ownFigures(graph, after.snapshot.sites, after.rows, value);
  const total = withDescendants(graph, own);
  const ownBefore = before ? ownFigures(graph, before.snapshot.sites, before.rows, value) : null;
  const totalBefore = ownBefore && withDescendants(graph, ownBefore);
  const varianceColumn = VARIANCES[value as keyof typeof VARIANCES];
  let widths = total;
  if (ownBefore && totalBefore) {
    if (differenceWidth === "before") {
      widths = totalBefore;
    } else if (differenceWidth === "growth") {
      widths = withDescendants(
        graph,
        own.map((bytes, node) => Math.max(bytes - float64At(ownBefore, node), 0)),
      );
    }
  }
  return {
    graph,
    layout: layOut(graph, widths),
    own,
    total,
    totalBefore,
    variance: varianceColumn
      ? withDescendants(graph, ownFigures(graph, after.snapshot.sites, after.rows, varianceColumn))
      : null,
    domain: mainDomains(graph, after.snapshot.sites, after.rows, value),
    width: widths[0] ?? 0,
  };
}

/** Number of the palette's fill, by position of the layout. */
export function colourPositions(
  tables: ProfileTables,
  flame: FlameGraph,
  mode: ColourMode,
): Uint8Array {
  const { layout, graph, domain, total, totalBefore } = flame;
  const { frames } = tables;
  const colours = new Uint8Array(layout.node.length);
  const shades = fileNumbers(tables, SHADES);
  const hues = fileNumbers(tables, FILE_HUES);
  colours[0] = KINDS.mark * SHADES;
  for (let at = 0; at < colours.length; at++) {
    const node = uint32At(layout.node, at);
    if (totalBefore) {
      colours[at] =
        DIFF_BASE +
        DIFF_STEPS +
        differenceStep(float64At(total, node), float64At(totalBefore, node));
      continue;
    }
    if (at === 0) {
      continue;
    }
    const frame = uint32At(graph.frame, node);
    const kind = uint8At(frames.kind, frame);
    if (mode === "file") {
      colours[at] = FILE_BASE + uint8At(hues, frame);
    } else if (kind === FrameKind.mark) {
      colours[at] = KINDS.mark * SHADES;
    } else {
      const shown =
        mode === "allocator"
          ? uint8At(domain, node)
          : kind === FrameKind.native
            ? KINDS.native
            : KINDS.python;
      colours[at] = shown * SHADES + uint8At(shades, frame);
    }
  }
  return colours;
}

/** -DIFF_STEPS (all freed) to DIFF_STEPS (all new), by the change as a share of the larger value. */
function differenceStep(after: number, before: number): number {
  const larger = Math.max(after, before);
  return larger > 0 ? Math.round(((after - before) / larger) * DIFF_STEPS) : 0;
}

/** For each frame: a number below `count` that is always the same for its file. */
function fileNumbers({ frames, strings }: ProfileTables, count: number): Uint8Array {
  const byString = new Map<number, number>();
  const numbers = new Uint8Array(frames.length);
  for (let frame = 0; frame < frames.length; frame++) {
    const file = uint32At(frames.file, frame);
    let number = byString.get(file);
    if (number === undefined) {
      let hash = 0;
      for (const character of strings[file] ?? "") {
        hash = (Math.imul(hash, 31) + character.charCodeAt(0)) | 0;
      }
      number = Math.abs(hash ^ (hash >>> 15)) % count;
      byString.set(file, number);
    }
    numbers[frame] = number;
  }
  return numbers;
}
