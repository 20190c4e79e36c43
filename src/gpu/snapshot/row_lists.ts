/** Lists of rows, which are ranges of them, and lists of such lists: the traces of all devices. */
import { itemAt } from "../../model/base/columns.js";
import { tooLarge } from "../../model/errors/errors.js";
import type { PickleMachine } from "../pickle/pickle_machine.js";
import { Kind } from "../pickle/token.js";

/** Most devices, each of which is replayed separately: more than any host has, but few enough to finish in time. */
export const MOST_DEVICES = 1024;

export interface RowRange {
  readonly kind: number;
  readonly first: number;
  readonly count: number;
}

export class RowLists {
  readonly #ranges: RowRange[] = [];
  readonly #traces: RowRange[][] = [];

  /** The range of rows that a token stands for; an empty one for an empty list or none. */
  rangeOf(kind: number, value: number, rows: number): RowRange | undefined {
    if (kind === Kind.openList || kind === Kind.none) {
      return { kind: rows, first: 0, count: 0 };
    }
    const range = kind === Kind.rows ? this.#ranges[value] : undefined;
    return range?.kind === rows ? range : undefined;
  }

  /** The row ranges that a token of `Kind.traces` stands for. */
  tracesOf(value: number): readonly RowRange[] {
    return itemAt(this.#traces, value);
  }

  /**
   * Adds the rows `[from, to)` of the machine's stack to the list `kind`, `value`, because Python writes a list of more
   * than 1,000 items in batches.
   * @returns the value of its token
   */
  addRows(m: PickleMachine, kind: number, value: number, from: number, to: number): number {
    const { kinds, values } = m.stack;
    const rowKind = kinds[from] ?? 0;
    const before = kind === Kind.rows ? itemAt(this.#ranges, value) : undefined;
    const first = before?.first ?? values[from] ?? 0;
    const known = before?.count ?? 0;
    if ((kind !== Kind.openList && before === undefined) || (before && before.kind !== rowKind)) {
      throw m.damaged("a list mixes values of different kinds");
    }
    for (let at = from; at < to; at++) {
      if (kinds[at] !== rowKind || values[at] !== first + known + at - from) {
        throw m.damaged("a list's rows are out of order");
      }
    }
    const list = before === undefined ? this.#ranges.length : value;
    this.#ranges[list] = { kind: rowKind, first, count: known + to - from };
    return list;
  }

  /** @returns the value of the token of a list of lists, `[from, to)` on the machine's stack */
  addTraces(m: PickleMachine, from: number, to: number): number {
    const lists: RowRange[] = [];
    for (let at = from; at < to; at++) {
      // A list of other lists is not a trace and must not be taken for one.
      const range = this.rangeOf(m.stack.kinds[at] ?? 0, m.stack.values[at] ?? 0, Kind.event);
      lists.push(range ?? { kind: Kind.event, first: 0, count: 0 });
    }
    if (lists.length > MOST_DEVICES) {
      throw tooLarge(`the number of devices in ${m.path}`, String(MOST_DEVICES));
    }
    return this.#traces.push(lists) - 1;
  }
}
