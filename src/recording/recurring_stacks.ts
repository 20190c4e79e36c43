/**
 * One stack for code that is compiled repeatedly. Each notebook cell, template, doctest or loop of `compile` has a file
 * name of its own, so that one line of such code appears in as many stacks as it was compiled times:
 *
 *     <module> <ipython-input-3-5f..>:1  ──┐
 *     <module> <ipython-input-4-91..>:1  ──┼──> <module> <ipython-input-3..9>:1     "In [3..9]"
 *     <module> <ipython-input-9-07..>:1  ──┘
 *
 * Stacks are joined if nothing but these names differs, in any of their frames.
 */
import { itemAt, uint8At, uint32At } from "../model/base/columns.js";
import type { StackId } from "../model/base/units.js";
import { recurringFile } from "../model/documents/own_code.js";
import { foldSites } from "../model/profile/fold_sites.js";
import { isNotebookCell, joinedCells } from "../model/profile/frame_text.js";
import type { FrameTable, ProfileTables, SiteTable } from "../model/profile/profile.js";

export interface JoinedStacks {
  readonly tables: ProfileTables;
  /** For each stack the one that represents it; null: all represent themselves. */
  readonly represents: Uint32Array | null;
}

export function joinRecurringStacks(tables: ProfileTables): JoinedStacks {
  const groups = recurringFiles(tables);
  return groups.size === 0 ? { tables, represents: null } : new Joiner(tables, groups).join();
}

/** The rows with the stacks that represent theirs; rows that become alike are added up. */
export function withJoinedStacks(
  sites: SiteTable,
  cohorts: number,
  { represents }: JoinedStacks,
): SiteTable {
  return represents === null || sites.length === 0
    ? sites
    : foldSites(
        [{ ...sites, stack: sites.stack.map((stack) => uint32At(represents, stack)) }],
        cohorts,
      );
}

/** The name of its group for each string that names compiled text, if the group has several. */
function recurringFiles({ strings }: ProfileTables): Map<number, string> {
  const members = new Map<string, number[]>();
  strings.forEach((text, id) => {
    if (text.startsWith("<") || isNotebookCell(text)) {
      const group = recurringFile(text);
      const known = members.get(group);
      if (known) {
        known.push(id);
      } else {
        members.set(group, [id]);
      }
    }
  });
  return new Map(
    [...members].flatMap(([group, ids]) =>
      ids.length > 1 ? ids.map((id) => [id, group] as const) : [],
    ),
  );
}

class Joiner {
  readonly #tables: ProfileTables;
  readonly #groups: ReadonlyMap<number, string>;
  readonly #strings: string[];
  readonly #stringIds = new Map<string, number>();
  /** Rows that are added to the tables. */
  readonly #frames: { readonly like: number; readonly file: number }[] = [];
  readonly #frameIds = new Map<string, number>();
  readonly #stacks: { readonly parent: StackId; readonly frame: number }[] = [];
  readonly #stackIds = new Map<string, StackId>();

  constructor(tables: ProfileTables, groups: ReadonlyMap<number, string>) {
    this.#tables = tables;
    this.#groups = groups;
    this.#strings = [...tables.strings];
  }

  join(): JoinedStacks {
    const { stacks } = this.#tables;
    const represents = Uint32Array.from({ length: stacks.length }, (_, stack) => stack);
    for (const alike of this.#stacksAlike()) {
      if (alike.length > 1) {
        const joined = this.#joined(alike);
        for (const stack of alike) {
          represents[stack] = joined;
        }
      }
    }
    return this.#stacks.length === 0
      ? { tables: this.#tables, represents: null }
      : { tables: this.#extended(), represents };
  }

  /** Stacks with the same frames, except for the names of recurring files; a parent comes before its children. */
  #stacksAlike(): StackId[][] {
    const { stacks, frames, strings } = this.#tables;
    const classOfFrame = this.#frameClasses(frames, strings);
    const classOfStack = new Uint32Array(stacks.length);
    const classes = new Map<string, StackId>();
    const members = new Map<StackId, StackId[]>();
    for (let stack = 1; stack < stacks.length; stack++) {
      const parent = uint32At(classOfStack, uint32At(stacks.parent, stack));
      const key = `${parent} ${uint32At(classOfFrame, uint32At(stacks.frame, stack))}`;
      const first = classes.get(key) ?? stack;
      classes.set(key, first);
      classOfStack[stack] = first;
      const alike = members.get(first);
      if (alike) {
        alike.push(stack);
      } else {
        members.set(first, [stack]);
      }
    }
    return [...members.values()];
  }

  #frameClasses(frames: FrameTable, strings: readonly string[]): Uint32Array {
    const firsts = new Map<string, number>();
    return Uint32Array.from({ length: frames.length }, (_, frame) => {
      const group = this.#groups.get(uint32At(frames.file, frame));
      if (group === undefined) {
        return frame;
      }
      const name = itemAt(strings, uint32At(frames.function, frame));
      const key = `${name}\n${group}\n${uint32At(frames.line, frame)}\n${uint8At(frames.kind, frame)}`;
      const first = firsts.get(key) ?? frame;
      firsts.set(key, first);
      return first;
    });
  }

  /** A stack whose frames name all files of the given ones. */
  #joined(alike: readonly StackId[]): StackId {
    const { stacks, frames } = this.#tables;
    const chains = alike.map((stack) => {
      const chain: number[] = [];
      for (let node = stack; node !== 0; node = uint32At(stacks.parent, node)) {
        chain.push(uint32At(stacks.frame, node));
      }
      return chain.reverse();
    });
    return itemAt(chains, 0).reduce((parent: StackId, frame, depth) => {
      const files = new Set(chains.map((chain) => uint32At(frames.file, itemAt(chain, depth))));
      return this.#stack(parent, files.size === 1 ? frame : this.#frame(frame, [...files]));
    }, 0);
  }

  #stack(parent: StackId, frame: number): StackId {
    return found(this.#stackIds, `${parent} ${frame}`, () => {
      return this.#tables.stacks.length + this.#stacks.push({ parent, frame }) - 1;
    });
  }

  #frame(like: number, files: readonly number[]): number {
    const { frames } = this.#tables;
    const names = files.map((file) => itemAt(this.#strings, file));
    const group = this.#groups.get(itemAt(files, 0)) ?? "";
    const file = this.#string(names.every(isNotebookCell) ? joinedCells(names) : group);
    const name = uint32At(frames.function, like);
    return found(this.#frameIds, `${name} ${file} ${uint32At(frames.line, like)}`, () => {
      return frames.length + this.#frames.push({ like, file }) - 1;
    });
  }

  #string(text: string): number {
    return found(this.#stringIds, text, () => this.#strings.push(text) - 1);
  }

  #extended(): ProfileTables {
    const { frames, stacks } = this.#tables;
    const likes = this.#frames.map(({ like }) => like);
    const more = (column: Uint32Array) =>
      joined(
        column,
        frames.length,
        likes.map((like) => uint32At(column, like)),
      );
    return {
      ...this.#tables,
      strings: this.#strings,
      frames: {
        length: frames.length + likes.length,
        function: more(frames.function),
        file: joined(
          frames.file,
          frames.length,
          this.#frames.map(({ file }) => file),
        ),
        line: more(frames.line),
        firstLine: more(frames.firstLine),
        kind: Uint8Array.from([
          ...frames.kind.subarray(0, frames.length),
          ...likes.map((like) => uint8At(frames.kind, like)),
        ]),
        address: Float64Array.from([
          ...frames.address.subarray(0, frames.length),
          ...likes.map((like) => frames.address[like] ?? 0),
        ]),
      },
      stacks: {
        length: stacks.length + this.#stacks.length,
        parent: joined(
          stacks.parent,
          stacks.length,
          this.#stacks.map(({ parent }) => parent),
        ),
        frame: joined(
          stacks.frame,
          stacks.length,
          this.#stacks.map(({ frame }) => frame),
        ),
      },
    };
  }
}

function joined(column: Uint32Array, length: number, more: readonly number[]): Uint32Array {
  const all = new Uint32Array(length + more.length);
  all.set(column.subarray(0, length));
  all.set(more, length);
  return all;
}

function found<Value>(known: Map<string, Value>, key: string, make: () => Value): Value {
  const value = known.get(key) ?? make();
  known.set(key, value);
  return value;
}
