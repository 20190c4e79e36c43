/**
 * Flame graphs as Pyroscope's clients draw them: levels of bars, four numbers each (distance to the bar before it, total,
 * self, index of the name); a comparison has seven numbers, three for each side.
 */
import { addAt, float64At, uint32At, wholeNumbers } from "../../model/base/columns.js";
import { mixHash, RowIndex } from "../../model/base/row_index.js";
import { frameName } from "../../model/profile/frame_text.js";
import type { ProfileFigure, WindowProfile } from "../../store/index.js";

export interface Flamebearer {
  readonly names: readonly string[];
  readonly levels: readonly (readonly number[])[];
  readonly total: number;
  readonly maxSelf: number;
}

export interface FlamebearerDiff extends Flamebearer {
  readonly leftTicks: number;
  readonly rightTicks: number;
}

export const USUAL_NODES = 8192;
const OTHER = "other";

/** Names by number; the first is the root's. */
class NameList {
  readonly names: string[] = ["total"];
  readonly #ids = new Map<string, number>([["total", 0]]);

  idOf(name: string): number {
    let id = this.#ids.get(name);
    if (id === undefined) {
      id = this.names.push(name) - 1;
      this.#ids.set(name, id);
    }
    return id;
  }
}

/** Functions, merged over their lines and files. Node 0 is the root; parents come first. */
class FunctionTree extends NameList {
  readonly parent: number[] = [0];
  readonly name: number[] = [0];
  readonly #index = new RowIndex();

  /** The node of each stack of the tables. */
  add({ tables }: WindowProfile): Uint32Array {
    const { stacks } = tables;
    const nodes = new Uint32Array(stacks.length);
    for (let stack = 1; stack < stacks.length; stack++) {
      const name = this.idOf(frameName(tables, uint32At(stacks.frame, stack)));
      nodes[stack] = this.child(uint32At(nodes, uint32At(stacks.parent, stack)), name);
    }
    return nodes;
  }

  child(parent: number, name: number): number {
    const hash = mixHash(mixHash(0, parent), name);
    const found = this.#index.find(
      hash,
      (node) => node > 0 && this.parent[node] === parent && this.name[node] === name,
    );
    if (found >= 0) {
      return found;
    }
    const node = this.parent.push(parent) - 1;
    this.name.push(name);
    this.#index.add(hash, node);
    return node;
  }
}

/** Self values by node, as whole numbers: totals are their exact sums. */
function selfValues(
  nodes: Uint32Array,
  { snapshot: { sites } }: WindowProfile,
  figure: ProfileFigure,
  length: number,
): Float64Array {
  const self = new Float64Array(length);
  for (let site = 0; site < sites.length; site++) {
    addAt(self, uint32At(nodes, uint32At(sites.stack, site)), float64At(sites[figure], site));
  }
  return wholeNumbers(self);
}

function totalsOf(self: Float64Array, parent: readonly number[]): Float64Array {
  const total = self.slice();
  for (let node = total.length - 1; node > 0; node--) {
    addAt(total, parent[node] ?? 0, float64At(total, node));
  }
  return total;
}

interface Side {
  readonly self: Float64Array;
  readonly total: Float64Array;
}

/** `mostNodes`: only the largest ones are shown; the rest of a node is its child "other". */
export function flamebearer(
  profile: WindowProfile,
  figure: ProfileFigure,
  mostNodes: number,
): Flamebearer {
  const tree = new FunctionTree();
  const nodes = tree.add(profile);
  const self = selfValues(nodes, profile, figure, tree.parent.length);
  const side = { self, total: totalsOf(self, tree.parent) };
  const { levels, names } = levelsOf(tree, [side], mostNodes);
  return { names, levels, total: side.total[0] ?? 0, maxSelf: largest(self) };
}

export function flamebearerDiff(
  left: WindowProfile,
  right: WindowProfile,
  figure: ProfileFigure,
  mostNodes: number,
): FlamebearerDiff {
  const tree = new FunctionTree();
  const nodes = [tree.add(left), tree.add(right)] as const;
  const sides = [left, right].map((profile, at) => {
    const self = selfValues(nodes[at] ?? nodes[0], profile, figure, tree.parent.length);
    return { self, total: totalsOf(self, tree.parent) };
  });
  const [leftTicks = 0, rightTicks = 0] = sides.map(({ total }) => total[0] ?? 0);
  return {
    ...levelsOf(tree, sides, mostNodes),
    total: leftTicks + rightTicks,
    maxSelf: Math.max(...sides.map(({ self }) => largest(self))),
    leftTicks,
    rightTicks,
  };
}

/** A bar: a node, or the rest of one. */
interface Bar {
  readonly node: number | null;
  readonly name: number;
  readonly totals: readonly number[];
  readonly selves: readonly number[];
  readonly starts: readonly number[];
}

/** Only the names of bars. */
function levelsOf(
  tree: FunctionTree,
  sides: readonly Side[],
  mostNodes: number,
): Pick<Flamebearer, "levels" | "names"> {
  const count = tree.parent.length;
  const weight = new Float64Array(count);
  for (const { total } of sides) {
    total.forEach((value, node) => {
      addAt(weight, node, value);
    });
  }
  const shown = nodesShown(weight, mostNodes);
  const names = new NameList();
  const children = childrenOf(tree.parent, (node) => float64At(weight, node) > 0);
  const valuesOf = (node: number, column: keyof Side) =>
    sides.map((side) => float64At(side[column], node));
  let level: Bar[] = [
    {
      node: 0,
      name: 0,
      totals: valuesOf(0, "total"),
      selves: valuesOf(0, "self"),
      starts: sides.map(() => 0),
    },
  ];
  const levels: number[][] = [];
  while (level.length > 0) {
    levels.push(encoded(level));
    level = level.flatMap(({ node, starts }) => {
      const below = node === null ? [] : (children.get(node) ?? []);
      const offsets = [...starts];
      const bars: Bar[] = [];
      const add = (child: number | null, name: string, totals: number[], selves: number[]) => {
        bars.push({ node: child, name: names.idOf(name), totals, selves, starts: [...offsets] });
        totals.forEach((total, side) => {
          offsets[side] = (offsets[side] ?? 0) + total;
        });
      };
      const omitted = sides.map(() => 0);
      for (const child of below) {
        const totals = valuesOf(child, "total");
        if (shown(child)) {
          add(child, tree.names[tree.name[child] ?? 0] ?? "", totals, valuesOf(child, "self"));
        } else {
          totals.forEach((total, side) => {
            omitted[side] = (omitted[side] ?? 0) + total;
          });
        }
      }
      if (omitted.some((total) => total > 0)) {
        add(null, OTHER, omitted, omitted);
      }
      return bars;
    });
  }
  return { levels, names: names.names };
}

/**
 * Whether a node is one of the `mostNodes` of largest weight; among equal ones the first, so parents come before
 * children.
 */
function nodesShown(weight: Float64Array, mostNodes: number): (node: number) => boolean {
  const sorted = weight.filter((value) => value > 0).sort();
  if (sorted.length <= mostNodes) {
    return () => true;
  }
  const least = float64At(sorted, sorted.length - mostNodes);
  let equal = mostNodes - sorted.filter((value) => value > least).length;
  const last = weight.findIndex((value) => {
    equal -= value === least ? 1 : 0;
    return equal === 0;
  });
  return (node) => {
    const value = float64At(weight, node);
    return value > least || (value === least && node <= last);
  };
}

/** By parent: its children with weight. */
function childrenOf(
  parent: readonly number[],
  counts: (node: number) => boolean,
): Map<number, number[]> {
  const children = new Map<number, number[]>();
  for (let node = 1; node < parent.length; node++) {
    if (counts(node)) {
      const above = parent[node] ?? 0;
      const list = children.get(above);
      if (list === undefined) {
        children.set(above, [node]);
      } else {
        list.push(node);
      }
    }
  }
  return children;
}

function encoded(level: readonly Bar[]): number[] {
  const ends = (level[0]?.totals ?? []).map(() => 0);
  return level.flatMap(({ totals, selves, starts, name }) => {
    const parts = totals.flatMap((total, side) => {
      const start = starts[side] ?? 0;
      const distance = start - (ends[side] ?? 0);
      ends[side] = start + total;
      return [distance, total, selves[side] ?? 0];
    });
    return [...parts, name];
  });
}

function largest(values: Float64Array): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
