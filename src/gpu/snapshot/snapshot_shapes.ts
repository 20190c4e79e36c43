/**
 * Recognizes a snapshot's dictionaries and lists by their keys as the pickle fills them, and writes them into rows:
 *
 *   dictionary                        becomes          list of it
 *   action, frames|size|time_us       event            rows (a device's trace)
 *   filename, name, line              frame            stack
 *   address, total_size               segment          rows
 *   state, size                       block            rows
 *   addr, real_size                   history          rows (torch <= 2.0)
 *   stage, name, time_us              annotation       rows
 *   segments | device_traces          snapshot; host_segments and host_traces are pinned memory
 *   anything else                     record: its JSON as one interned string
 */
import { float64At, uint32At } from "../../model/base/columns.js";
import { tooLarge } from "../../model/errors/errors.js";
import { BlockState, GpuAction } from "../../model/gpu/gpu_snapshot.js";
import { type Bracket, JsonRecords } from "../pickle/json_records.js";
import type { PickleMachine, Shapes } from "../pickle/pickle_machine.js";
import { StringPool } from "../pickle/string_pool.js";
import { Kind } from "../pickle/token.js";
import { DictionaryFields } from "./dictionary_fields.js";
import { rowInPiece } from "./piece_table.js";
import { MOST_DEVICES, RowLists } from "./row_lists.js";
import { Form, KEY } from "./snapshot_keys.js";
import { type Parts, readParts } from "./snapshot_parts.js";
import { actionOf, SnapshotRows, stateOf } from "./snapshot_rows.js";
import { StackTable } from "./stack_table.js";

const MOST_STREAMS = 65_536;
const MOST_UNKNOWN = 20;

export class SnapshotShapes implements Shapes {
  result = 0;
  readonly strings = new StringPool();
  readonly stacks = new StackTable();
  readonly rows = new SnapshotRows();
  readonly lists = new RowLists();
  readonly streams = new Map<number, number>();
  readonly unknownActions = new Set<string>();
  parts: Parts | undefined;
  /** The frame that joins a backward pass to its forward pass. */
  #backward: number | undefined;
  /** The last key and value of `streams`: most entries have the same. */
  #lastStream = Number.NaN;
  #lastStreamRow = 0;
  readonly #fields = new DictionaryFields(this.strings);
  /** By string id. */
  readonly #actions = new Map<number, GpuAction>();
  readonly #records = new JsonRecords(this.strings);

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
    this.#fields.read(machine, from, to);
    switch (this.#fields.form) {
      case Form.event:
        return this.#event(machine);
      case Form.frame:
        return this.#frame(machine);
      case Form.segment:
        return this.#segment(machine);
      case Form.block: {
        const state = stateOf(this.#fields.text(KEY.state));
        return state === undefined
          ? this.#record(machine, from, to, "{")
          : this.#block(machine, state);
      }
      case Form.history:
        return this.#history(machine);
      case Form.annotation:
        return this.#annotation(machine);
      case Form.snapshot:
        return this.#snapshot(machine);
      default:
        return this.#record(machine, from, to, "{");
    }
  }

  list(machine: PickleMachine, kind: number, value: number, from: number, to: number): number {
    const { kinds } = machine.stack;
    const first = kinds[from] ?? 0;
    if (kind === Kind.record) {
      return this.#extendRecord(machine, value, from, to, "[");
    }
    if (first === Kind.frame && (kind === Kind.openList || kind === Kind.stack)) {
      return this.#frames(machine, kind, value, from, to);
    }
    if (first >= Kind.event && first <= Kind.annotation) {
      this.result = this.lists.addRows(machine, kind, value, from, to);
      return Kind.rows;
    }
    if (kind !== Kind.openList) {
      throw machine.damaged("a list mixes values of different kinds");
    }
    let nested = true;
    for (let at = from; at < to && nested; at++) {
      nested = kinds[at] === Kind.rows || kinds[at] === Kind.openList;
    }
    if (!nested) {
      return this.#record(machine, from, to, "[");
    }
    this.result = this.lists.addTraces(machine, from, to);
    return Kind.traces;
  }

  tuple(machine: PickleMachine, from: number, to: number): number {
    return this.#record(machine, from, to, "[");
  }

  // --- dictionaries ----------------------------------------------------------------------------

  /** A backward pass has no Python frames of its own, so the stack of its forward pass is added below. */
  #stack(): number {
    const stack = this.#stackAt(KEY.frames);
    const forward = this.#stackAt(KEY.forward_frames);
    if (forward === 0) {
      return stack;
    }
    this.#backward ??= this.stacks.frame(this.strings.internText("backward"), 0, 0);
    return this.stacks.joined(stack, this.#backward, forward);
  }

  #stackAt(key: number): number {
    return this.#fields.kind(key) === Kind.stack ? this.#fields.value(key) : 0;
  }

  #stream(machine: PickleMachine): number {
    const at = this.#fields.at(KEY.stream);
    const stream = machine.stack.kinds[at] === Kind.number ? (machine.stack.values[at] ?? 0) : 0;
    if (stream === this.#lastStream) {
      return this.#lastStreamRow;
    }
    if (!Number.isFinite(stream)) {
      throw machine.damaged(`${stream} is not a stream`);
    }
    let row = this.streams.get(stream);
    if (row === undefined) {
      row = this.streams.size;
      if (row >= MOST_STREAMS) {
        throw tooLarge(`the number of streams in ${machine.path}`, String(MOST_STREAMS));
      }
      this.streams.set(stream, row);
    }
    this.#lastStream = stream;
    this.#lastStreamRow = row;
    return row;
  }

  #device(machine: PickleMachine): number {
    const device = this.#fields.numberOr(KEY.device, 0);
    if (!(device >= 0 && device < MOST_DEVICES) || !Number.isInteger(device)) {
      throw machine.damaged(`${device} is not a device`);
    }
    return device;
  }

  #row(kind: number, rows: number): number {
    this.result = rows - 1;
    return kind;
  }

  #event(machine: PickleMachine): number {
    const { events } = this.rows;
    const fields = this.#fields;
    const action = this.#action(fields.textId(KEY.action));
    const outOfMemory = action === GpuAction.outOfMemory && fields.has(KEY.device_free);
    const address = outOfMemory ? KEY.device_free : KEY.addr;
    // Entries of an unknown action may have neither.
    const isOther = action === GpuAction.other;
    const row = events.append();
    const { piece } = events;
    const { kinds, values } = machine.stack;
    piece.action[row] = action;
    if (!isOther || fields.has(address)) {
      piece.address[row] = values[fields.sizeAt(machine, address)] ?? 0;
    }
    if (action !== GpuAction.annotate && (!isOther || fields.has(KEY.size))) {
      piece.size[row] = values[fields.sizeAt(machine, KEY.size)] ?? 0;
    }
    piece.stream[row] = this.#stream(machine);
    const timeAt = fields.at(KEY.time_us);
    const timeUs = kinds[timeAt] === Kind.number ? (values[timeAt] ?? 0) : 0;
    piece.timeUs[row] = timeUs > 0 && Number.isFinite(timeUs) ? timeUs : 0;
    piece.stack[row] = this.#stack();
    piece.metadata[row] = fields.textId(KEY.user_metadata);
    piece.category[row] = fields.textId(KEY.category);
    piece.pool[row] = fields.textId(KEY.pool_id);
    return this.#row(Kind.event, events.length);
  }

  /** Each action name is decoded only once. */
  #action(name: number): GpuAction {
    let action = this.#actions.get(name);
    if (action === undefined) {
      const text = this.strings.text(name);
      action = actionOf(text);
      if (action === GpuAction.other && this.unknownActions.size < MOST_UNKNOWN) {
        this.unknownActions.add(text.slice(0, 40));
      }
      this.#actions.set(name, action);
    }
    return action;
  }

  #frame(machine: PickleMachine): number {
    const { name, filename } = KEY;
    if (this.#fields.kind(name) !== Kind.string || this.#fields.kind(filename) !== Kind.string) {
      throw machine.damaged("a frame has no name");
    }
    const line = this.#fields.numberOr(KEY.line, 0);
    this.result = this.stacks.frame(
      this.#fields.value(name),
      this.#fields.value(filename),
      line >= 0 && line < 2 ** 32 ? Math.floor(line) : 0,
    );
    return Kind.frame;
  }

  #segment(machine: PickleMachine): number {
    const { segments } = this.rows;
    const blocks = this.#fields.has(KEY.blocks)
      ? this.lists.rangeOf(
          this.#fields.kind(KEY.blocks),
          this.#fields.value(KEY.blocks),
          Kind.block,
        )
      : { first: 0, count: 0 };
    if (blocks === undefined) {
      throw machine.damaged("a segment's blocks have another type");
    }
    let inBlocks = 0;
    for (let block = blocks.first; block < blocks.first + blocks.count; block++) {
      inBlocks += float64At(this.rows.blocks.pieceOf(block).size, rowInPiece(block));
    }
    if (inBlocks > this.#fields.size(machine, KEY.total_size)) {
      throw machine.damaged(
        `blocks of ${inBlocks} bytes in a segment of ${this.#fields.value(KEY.total_size)}`,
      );
    }
    const row = segments.append();
    const { piece } = segments;
    piece.device[row] = this.#device(machine);
    piece.address[row] = this.#fields.size(machine, KEY.address);
    piece.size[row] = this.#fields.size(machine, KEY.total_size);
    piece.allocated[row] = this.#fields.numberOr(KEY.allocated_size, Number.NaN);
    piece.active[row] = this.#fields.numberOr(KEY.active_size, Number.NaN);
    piece.requested[row] = this.#fields.numberOr(KEY.requested_size, Number.NaN);
    piece.stream[row] = this.#stream(machine);
    piece.pool[row] = this.#fields.textId(KEY.segment_pool_id);
    piece.type[row] = this.#fields.textId(KEY.segment_type);
    piece.expandable[row] = this.#numberOrTrue(KEY.is_expandable);
    piece.firstBlock[row] = blocks.first;
    piece.blockCount[row] = blocks.count;
    return this.#row(Kind.segment, segments.length);
  }

  #numberOrTrue(key: number): number {
    return this.#fields.kind(key) === Kind.boolean ? this.#fields.value(key) : 0;
  }

  #block(machine: PickleMachine, state: BlockState): number {
    const { blocks, histories } = this.rows;
    const size = this.#fields.size(machine, KEY.size);
    let stack = this.#stack();
    let requested = this.#fields.numberOr(KEY.requested_size, Number.NaN);
    const newest = this.#fields.has(KEY.history)
      ? this.lists.rangeOf(
          this.#fields.kind(KEY.history),
          this.#fields.value(KEY.history),
          Kind.history,
        )
      : undefined;
    if (newest !== undefined && newest.count > 0) {
      const piece = histories.pieceOf(newest.first);
      const row = rowInPiece(newest.first);
      stack = stack === 0 ? uint32At(piece.stack, row) : stack;
      requested = Number.isNaN(requested) ? float64At(piece.size, row) : requested;
    }
    const used = state !== BlockState.inactive;
    if (used && (requested < 0 || requested > size)) {
      throw machine.damaged(`a block of ${size} bytes has a requested size of ${requested}`);
    }
    const asked = Number.isNaN(requested) ? size : requested;
    const row = blocks.append();
    const { piece } = blocks;
    piece.address[row] = this.#fields.has(KEY.address)
      ? this.#fields.size(machine, KEY.address)
      : Number.NaN;
    piece.size[row] = size;
    // A free block still contains its last requested size.
    piece.requested[row] = used ? asked : 0;
    piece.state[row] = state;
    piece.stack[row] = stack;
    return this.#row(Kind.block, blocks.length);
  }

  #history(machine: PickleMachine): number {
    const { histories } = this.rows;
    const row = histories.append();
    histories.piece.size[row] = this.#fields.size(machine, KEY.real_size);
    histories.piece.stack[row] = this.#stack();
    return this.#row(Kind.history, histories.length);
  }

  #annotation(machine: PickleMachine): number {
    const { annotations } = this.rows;
    const row = annotations.append();
    const { piece } = annotations;
    piece.stage[row] = this.#fields.textId(KEY.stage);
    piece.name[row] = this.#fields.textId(KEY.name);
    piece.device[row] = this.#device(machine);
    piece.timeUs[row] = this.#fields.finiteOr(KEY.time_us, 0);
    return this.#row(Kind.annotation, annotations.length);
  }

  #snapshot(machine: PickleMachine): number {
    this.parts = readParts(this.#fields, machine, this.lists);
    this.result = 0;
    return Kind.snapshot;
  }

  // --- lists -----------------------------------------------------------------------------------

  #frames(m: PickleMachine, kind: number, value: number, from: number, to: number): number {
    for (let at = from; at < to; at++) {
      if (m.stack.kinds[at] !== Kind.frame) {
        throw m.damaged("a stack contains something that is not a frame");
      }
    }
    // Python writes a list of more than 1,000 items in batches.
    const before = kind === Kind.stack ? this.stacks.framesOf(value) : [];
    if (before.length === 0) {
      this.result = this.stacks.stack(m.stack.values, from, to);
    } else {
      const whole = [...before, ...m.stack.values.subarray(from, to)];
      if (whole.length > 100_000) {
        throw tooLarge(`a stack in ${m.path}`, "100,000 frames");
      }
      this.result = this.stacks.stack(whole, 0, whole.length);
    }
    return Kind.stack;
  }

  #record(machine: PickleMachine, from: number, to: number, open: Bracket): number {
    this.result = this.#records.make(machine, from, to, open);
    return Kind.record;
  }

  #extendRecord(
    machine: PickleMachine,
    id: number,
    from: number,
    to: number,
    open: Bracket,
  ): number {
    this.result = this.#records.extend(machine, id, from, to, open);
    return Kind.record;
  }
}
