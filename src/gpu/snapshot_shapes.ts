/**
 * Tells a snapshot's dictionaries and lists apart by their keys, as the pickle fills them, and writes
 * them into rows:
 *
 *   dictionary                        becomes          list of it
 *   action, addr|device_free, size    event            rows (a device's trace)
 *   filename, name, line              frame            stack
 *   address, total_size               segment          rows
 *   state, size                       block            rows
 *   addr, real_size                   history          rows (torch <= 2.0)
 *   stage, name, time_us              annotation       rows
 *   segments | device_traces          snapshot
 *   anything else                     record: its JSON as one interned string
 */
import { tooLarge } from "../model/errors.js";
import { BlockState, GpuAction } from "../model/gpu_snapshot.js";
import type { PickleMachine, Shapes } from "./pickle_machine.js";
import { KEY, KEYS, keyOf, NO_KEY } from "./snapshot_keys.js";
import { actionOf, SnapshotRows, stateOf } from "./snapshot_rows.js";
import { StackTable } from "./stack_table.js";
import { StringPool } from "./string_pool.js";
import { Kind } from "./token.js";

export interface RowRange {
  readonly kind: number;
  readonly first: number;
  readonly count: number;
}

/** What the outermost dictionary named. */
export interface Parts {
  readonly segments: RowRange;
  readonly traces: readonly RowRange[];
  readonly annotations: RowRange;
  /** String id of JSON; 0 where there are none. */
  readonly settings: number;
}

/** JSON of one value that is none of the table above, and of all of them together. */
const LARGEST_RECORD = 2 ** 20;
const MOST_RECORDS = 256 * 2 ** 20;
const MOST_STREAMS = 65_536;
const MOST_DEVICES = 65_536;

export class SnapshotShapes implements Shapes {
  result = 0;
  readonly strings = new StringPool();
  readonly stacks = new StackTable();
  readonly rows = new SnapshotRows();
  readonly streams = new Map<number, number>();
  readonly unknownActions = new Set<string>();
  parts: Parts | undefined;
  readonly #ranges: RowRange[] = [];
  readonly #traces: RowRange[][] = [];
  /** By string id: which key of a snapshot it is. */
  #keys = new Uint8Array(256).fill(NO_KEY);
  #keysKnown = 0;
  /** The fields of the dictionary at hand, by key. */
  readonly #kinds = new Uint8Array(KEYS.length);
  readonly #values = new Float64Array(KEYS.length);
  readonly #seen = new Uint32Array(KEYS.length);
  #turn = 0;
  #recordBytes = 0;

  dict(machine: PickleMachine, kind: number, value: number, from: number, to: number): number {
    if ((to - from) % 2 !== 0) {
      throw machine.damaged("a dictionary's last key has no value");
    }
    if (kind === Kind.record) {
      return this.#extendRecord(machine, value, from, to, "{");
    }
    if (kind !== Kind.openDict) {
      throw machine.damaged("a dictionary is filled twice");
    }
    this.#readFields(machine, from, to);
    if (this.#has(KEY.action) && this.#has(KEY.size) && this.#hasAddress()) {
      return this.#event(machine);
    }
    if (this.#has(KEY.filename) && this.#has(KEY.name)) {
      return this.#frame(machine);
    }
    if (this.#has(KEY.total_size) && this.#has(KEY.address)) {
      return this.#segment(machine);
    }
    if (this.#has(KEY.state) && this.#has(KEY.size)) {
      const state = stateOf(this.#text(KEY.state));
      return state === undefined
        ? this.#record(machine, from, to, "{")
        : this.#block(machine, state);
    }
    if (this.#has(KEY.real_size) && this.#has(KEY.addr)) {
      this.rows.histories.size.push(this.#size(machine, KEY.real_size));
      this.rows.histories.stack.push(this.#stack());
      return this.#row(Kind.history, this.rows.histories.size.length);
    }
    if (this.#has(KEY.stage) && this.#has(KEY.name) && this.#has(KEY.time_us)) {
      return this.#annotation(machine);
    }
    if (this.#has(KEY.segments) || this.#has(KEY.device_traces)) {
      return this.#snapshot(machine);
    }
    return this.#record(machine, from, to, "{");
  }

  list(machine: PickleMachine, kind: number, value: number, from: number, to: number): number {
    const { kinds } = machine;
    const first = kinds[from]!;
    if (kind === Kind.record) {
      return this.#extendRecord(machine, value, from, to, "[");
    }
    if (first === Kind.frame && (kind === Kind.openList || kind === Kind.stack)) {
      return this.#frames(machine, kind, value, from, to);
    }
    if (first >= Kind.event && first <= Kind.annotation) {
      return this.#rowList(machine, kind, value, from, to);
    }
    if (kind !== Kind.openList) {
      throw machine.damaged("a list mixes values of different kinds");
    }
    let nested = true;
    for (let at = from; at < to && nested; at++) {
      nested = kinds[at] === Kind.rows || kinds[at] === Kind.openList;
    }
    return nested ? this.#traceLists(machine, from, to) : this.#record(machine, from, to, "[");
  }

  tuple(machine: PickleMachine, from: number, to: number): number {
    return this.#record(machine, from, to, "[");
  }

  /** The range of rows that a token stands for; an empty one for an empty list or none. */
  rangeOf(kind: number, value: number, rows: number): RowRange | undefined {
    if (kind === Kind.openList || kind === Kind.none) {
      return { kind: rows, first: 0, count: 0 };
    }
    const range = kind === Kind.rows ? this.#ranges[value] : undefined;
    return range?.kind === rows ? range : undefined;
  }

  // --- dictionaries ----------------------------------------------------------------------------

  #readFields(machine: PickleMachine, from: number, to: number): void {
    const { kinds, values } = machine;
    this.#turn += 1;
    for (let at = from; at < to; at += 2) {
      if (kinds[at] === Kind.string) {
        const key = this.#keyOf(values[at]!);
        if (key !== NO_KEY) {
          this.#seen[key] = this.#turn;
          this.#kinds[key] = kinds[at + 1]!;
          this.#values[key] = values[at + 1]!;
        }
      }
    }
  }

  #keyOf(id: number): number {
    if (id >= this.#keysKnown) {
      if (this.strings.length > this.#keys.length) {
        const grown = new Uint8Array(this.strings.length * 2).fill(NO_KEY);
        grown.set(this.#keys);
        this.#keys = grown;
      }
      for (; this.#keysKnown < this.strings.length; this.#keysKnown++) {
        const id = this.#keysKnown;
        this.#keys[id] = this.strings.size(id) > 24 ? NO_KEY : keyOf(this.strings.text(id));
      }
    }
    return this.#keys[id]!;
  }

  #has(key: number): boolean {
    return this.#seen[key] === this.#turn;
  }

  #hasAddress(): boolean {
    return this.#has(KEY.addr) || this.#has(KEY.device_free);
  }

  /** Bytes or an address. */
  #size(machine: PickleMachine, key: number): number {
    const value = this.#values[key]!;
    if (!this.#has(key) || this.#kinds[key] !== Kind.number || !(value >= 0)) {
      throw machine.damaged(`"${KEYS[key]}" is no size or address`);
    }
    if (!Number.isSafeInteger(value)) {
      throw machine.damaged(`"${KEYS[key]}" is beyond any address`);
    }
    return value;
  }

  #numberOr(key: number, otherwise: number): number {
    return this.#has(key) && this.#kinds[key] === Kind.number ? this.#values[key]! : otherwise;
  }

  #text(key: number): string {
    return this.#has(key) && this.#kinds[key] === Kind.string
      ? this.strings.text(this.#values[key]!)
      : "";
  }

  /** String id of a text or record; 0 otherwise. */
  #textId(key: number): number {
    const kind = this.#kinds[key];
    return this.#has(key) && (kind === Kind.string || kind === Kind.record)
      ? this.#values[key]!
      : 0;
  }

  #stack(): number {
    return this.#has(KEY.frames) && this.#kinds[KEY.frames] === Kind.stack
      ? this.#values[KEY.frames]!
      : 0;
  }

  #stream(machine: PickleMachine): number {
    const stream = this.#numberOr(KEY.stream, 0);
    let row = this.streams.get(stream);
    if (row === undefined) {
      row = this.streams.size;
      if (row >= MOST_STREAMS) {
        throw tooLarge(`the number of streams in ${machine.path}`, String(MOST_STREAMS));
      }
      this.streams.set(stream, row);
    }
    return row;
  }

  #device(machine: PickleMachine): number {
    const device = this.#numberOr(KEY.device, 0);
    if (!(device >= 0 && device < MOST_DEVICES) || !Number.isInteger(device)) {
      throw machine.damaged(`${device} is no device`);
    }
    return device;
  }

  #row(kind: number, rows: number): number {
    this.result = rows - 1;
    return kind;
  }

  #event(machine: PickleMachine): number {
    const { events } = this.rows;
    const name = this.#text(KEY.action);
    const action = actionOf(name);
    if (action === GpuAction.other) {
      this.unknownActions.add(name.slice(0, 40));
    }
    const outOfMemory = action === GpuAction.outOfMemory && this.#has(KEY.device_free);
    events.action.push(action);
    events.address.push(this.#size(machine, outOfMemory ? KEY.device_free : KEY.addr));
    events.size.push(this.#size(machine, KEY.size));
    events.stream.push(this.#stream(machine));
    events.timeUs.push(this.#numberOr(KEY.time_us, 0));
    events.stack.push(this.#stack());
    events.metadata.push(this.#textId(KEY.user_metadata));
    events.category.push(this.#textId(KEY.category));
    events.pool.push(this.#textId(KEY.pool_id));
    return this.#row(Kind.event, events.action.length);
  }

  #frame(machine: PickleMachine): number {
    const { name, filename } = KEY;
    if (this.#kinds[name] !== Kind.string || this.#kinds[filename] !== Kind.string) {
      throw machine.damaged("a frame has no name");
    }
    const line = this.#numberOr(KEY.line, 0);
    this.result = this.stacks.frame(
      this.#values[name]!,
      this.#values[filename]!,
      line >= 0 && line < 2 ** 32 ? Math.floor(line) : 0,
    );
    return Kind.frame;
  }

  #segment(machine: PickleMachine): number {
    const { segments } = this.rows;
    const blocks = this.#has(KEY.blocks)
      ? this.rangeOf(this.#kinds[KEY.blocks]!, this.#values[KEY.blocks]!, Kind.block)
      : { first: 0, count: 0 };
    if (blocks === undefined) {
      throw machine.damaged("a segment's blocks are no blocks");
    }
    segments.device.push(this.#device(machine));
    segments.address.push(this.#size(machine, KEY.address));
    segments.size.push(this.#size(machine, KEY.total_size));
    segments.allocated.push(this.#numberOr(KEY.allocated_size, Number.NaN));
    segments.active.push(this.#numberOr(KEY.active_size, Number.NaN));
    segments.requested.push(this.#numberOr(KEY.requested_size, Number.NaN));
    segments.stream.push(this.#stream(machine));
    segments.pool.push(this.#textId(KEY.segment_pool_id));
    segments.type.push(this.#textId(KEY.segment_type));
    segments.expandable.push(this.#numberOrTrue(KEY.is_expandable));
    segments.firstBlock.push(blocks.first);
    segments.blockCount.push(blocks.count);
    return this.#row(Kind.segment, segments.size.length);
  }

  #numberOrTrue(key: number): number {
    return this.#has(key) && this.#kinds[key] === Kind.boolean ? this.#values[key]! : 0;
  }

  #block(machine: PickleMachine, state: BlockState): number {
    const { blocks, histories } = this.rows;
    const size = this.#size(machine, KEY.size);
    let stack = this.#stack();
    let requested = this.#numberOr(KEY.requested_size, Number.NaN);
    const newest = this.#has(KEY.history)
      ? this.rangeOf(this.#kinds[KEY.history]!, this.#values[KEY.history]!, Kind.history)
      : undefined;
    if (newest !== undefined && newest.count > 0) {
      stack = stack === 0 ? histories.stack.at(newest.first) : stack;
      requested = Number.isNaN(requested) ? histories.size.at(newest.first) : requested;
    }
    // What a free block once was asked for still stands in it.
    const asked = Number.isNaN(requested) ? size : requested;
    blocks.address.push(this.#has(KEY.address) ? this.#size(machine, KEY.address) : Number.NaN);
    blocks.size.push(size);
    blocks.requested.push(state === BlockState.inactive ? 0 : asked);
    blocks.state.push(state);
    blocks.stack.push(stack);
    return this.#row(Kind.block, blocks.size.length);
  }

  #annotation(machine: PickleMachine): number {
    const { annotations } = this.rows;
    annotations.stage.push(this.#textId(KEY.stage));
    annotations.name.push(this.#textId(KEY.name));
    annotations.device.push(this.#device(machine));
    annotations.timeUs.push(this.#numberOr(KEY.time_us, 0));
    return this.#row(Kind.annotation, annotations.timeUs.length);
  }

  #snapshot(machine: PickleMachine): number {
    const part = (key: number, rows: number): RowRange => {
      const range = this.#has(key)
        ? this.rangeOf(this.#kinds[key]!, this.#values[key]!, rows)
        : { kind: rows, first: 0, count: 0 };
      if (range === undefined) {
        throw machine.damaged(`"${KEYS[key]}" holds something else`);
      }
      return range;
    };
    const empty = this.#kinds[KEY.device_traces] === Kind.openList;
    if (this.#has(KEY.device_traces) && this.#kinds[KEY.device_traces] !== Kind.traces && !empty) {
      throw machine.damaged('"device_traces" holds something else');
    }
    this.parts = {
      segments: part(KEY.segments, Kind.segment),
      traces:
        this.#has(KEY.device_traces) && !empty
          ? this.#traces[this.#values[KEY.device_traces]!]!
          : [],
      annotations: part(KEY.external_annotations, Kind.annotation),
      settings: this.#textId(KEY.allocator_settings),
    };
    this.result = 0;
    return Kind.snapshot;
  }

  // --- lists -----------------------------------------------------------------------------------

  #frames(m: PickleMachine, kind: number, value: number, from: number, to: number): number {
    for (let at = from; at < to; at++) {
      if (m.kinds[at] !== Kind.frame) {
        throw m.damaged("a stack holds something that is no frame");
      }
    }
    // Python writes a list of more than 1,000 items in batches.
    const before = kind === Kind.stack ? this.stacks.framesOf(value) : [];
    if (before.length === 0) {
      this.result = this.stacks.stack(m.values, from, to);
    } else {
      const whole = [...before, ...m.values.subarray(from, to)];
      if (whole.length > 100_000) {
        throw tooLarge(`a stack in ${m.path}`, "100,000 frames");
      }
      this.result = this.stacks.stack(whole, 0, whole.length);
    }
    return Kind.stack;
  }

  #rowList(m: PickleMachine, kind: number, value: number, from: number, to: number): number {
    const rowKind = m.kinds[from]!;
    const before = kind === Kind.rows ? this.#ranges[value]! : undefined;
    const first = before?.first ?? m.values[from]!;
    const known = before?.count ?? 0;
    if ((kind !== Kind.openList && before === undefined) || (before && before.kind !== rowKind)) {
      throw m.damaged("a list mixes values of different kinds");
    }
    for (let at = from; at < to; at++) {
      if (m.kinds[at] !== rowKind || m.values[at] !== first + known + at - from) {
        throw m.damaged("a list's rows are out of order");
      }
    }
    const range = { kind: rowKind, first, count: known + to - from };
    this.result = before === undefined ? this.#ranges.push(range) - 1 : value;
    this.#ranges[this.result] = range;
    return Kind.rows;
  }

  #traceLists(m: PickleMachine, from: number, to: number): number {
    const lists: RowRange[] = [];
    for (let at = from; at < to; at++) {
      // A list of other lists is no trace: it only must not pass as one.
      const range = this.rangeOf(m.kinds[at]!, m.values[at]!, Kind.event);
      lists.push(range ?? { kind: Kind.event, first: 0, count: 0 });
    }
    if (lists.length > MOST_DEVICES) {
      throw tooLarge(`the number of devices in ${m.path}`, String(MOST_DEVICES));
    }
    this.result = this.#traces.push(lists) - 1;
    return Kind.traces;
  }

  // --- anything else ---------------------------------------------------------------------------

  #record(m: PickleMachine, from: number, to: number, open: "{" | "["): number {
    return this.#keepRecord(m, this.#jsonOf(m, from, to, open));
  }

  #extendRecord(m: PickleMachine, id: number, from: number, to: number, open: "{" | "["): number {
    const before = this.strings.text(id);
    // An empty tuple is a record too, and nothing may be added to it.
    if (!before.startsWith(open) || before.length === 2) {
      throw m.damaged("a container is filled as one of another kind");
    }
    return this.#keepRecord(
      m,
      `${before.slice(0, -1)},${this.#jsonOf(m, from, to, open).slice(1)}`,
    );
  }

  #keepRecord(machine: PickleMachine, text: string): number {
    this.#recordBytes += text.length;
    if (text.length > LARGEST_RECORD || this.#recordBytes > MOST_RECORDS) {
      throw tooLarge(
        `what stands at offset ${machine.offset} of ${machine.path} beside the trace`,
        "1 MiB a value, 256 MiB in all",
      );
    }
    this.result = this.strings.internText(text);
    return Kind.record;
  }

  #jsonOf(machine: PickleMachine, from: number, to: number, open: "{" | "["): string {
    const parts: string[] = [];
    let size = 0;
    for (let at = from; at < to; at += open === "{" ? 2 : 1) {
      const text = this.#jsonValue(machine, at);
      const part = open === "[" ? text : `${keyText(text)}:${this.#jsonValue(machine, at + 1)}`;
      size += part.length;
      if (size > LARGEST_RECORD) {
        throw tooLarge(`a value at offset ${machine.offset} of ${machine.path}`, "1 MiB");
      }
      parts.push(part);
    }
    return `${open}${parts.join(",")}${open === "{" ? "}" : "]"}`;
  }

  #jsonValue({ kinds, values }: PickleMachine, at: number): string {
    const value = values[at]!;
    switch (kinds[at]) {
      case Kind.number:
        return Number.isFinite(value) ? String(value) : "null";
      case Kind.boolean:
        return value === 1 ? "true" : "false";
      case Kind.string:
        return JSON.stringify(this.strings.text(value));
      case Kind.record:
        return this.strings.text(value);
      case Kind.openDict:
        return "{}";
      case Kind.openList:
        return "[]";
      default:
        return "null";
    }
  }
}

/** A key of JSON is text. */
function keyText(json: string): string {
  return json.startsWith('"') ? json : JSON.stringify(json);
}
