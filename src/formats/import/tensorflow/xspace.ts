/**
 * The memory events of a profiler's XSpace (`*.xplane.pb`), as xplane.proto of TensorFlow and XLA defines it:
 *
 *   XSpace  1 planes      XPlane  2 name, 3 lines, 4 event names, 5 stat names (maps), 6 stats
 *   XLine   3 start in ns, 4 events        XEvent  1 name, 2 offset in ps, 4 stats
 *   XStat   1 name, 2 double, 3 uint64, 4 int64, 5 string, 7 string by its number among the stat names
 */
import { BinaryReader } from "@bufbuild/protobuf/wire";
import type { Bytes } from "../../../model/base/units.js";
import { ForeignExcess, ForeignFault, MOST_ROWS, requireRoom } from "../importer.js";

export interface MemoryEvent {
  /** Since the start of the trace. */
  readonly ns: number;
  readonly isAllocation: boolean;
  readonly allocator: string;
  readonly address: number;
  /** Of the block, rounded by the allocator. */
  readonly bytes: Bytes;
  /** What the allocator holds after the event. */
  readonly allocated: Bytes;
  /** The operation: "adam/Mul_11"; "" if the allocator was called outside one. */
  readonly operation: string;
  /** "output", "temp", "persist/dynamic"; "" unknown. */
  readonly region: string;
}

interface Trace {
  /** Ascending by time. */
  readonly events: readonly MemoryEvent[];
  /** ns since 1970; 0 unknown. */
  readonly startedNs: number;
}

type Stat = number | string;
type Field = readonly [number, (reader: BinaryReader) => unknown];

const PLANE_NAMES = /^(?:\/host:|\/device:|Task Environment)/;
const FIRST_BYTES = 64;

/** Whether the content begins with a plane: field 1, its length, and within it an optional number and a name. */
export function isXSpace(bytes: Buffer): boolean {
  if (bytes[0] !== 0x0a || bytes.length < FIRST_BYTES) {
    return false;
  }
  try {
    const reader = new BinaryReader(bytes.subarray(1, FIRST_BYTES));
    reader.uint32();
    let [field, type] = reader.tag();
    if (field === 1) {
      reader.skip(type, field);
      [field, type] = reader.tag();
    }
    return field === 2 && PLANE_NAMES.test(reader.string());
  } catch {
    return false; // A name that is longer, or no message.
  }
}

/** Throws ForeignFault for content that is cut off or no such message. */
export function readXSpace(bytes: Uint8Array): Trace {
  const events: MemoryEvent[] = [];
  let startedNs = 0;
  try {
    for (const content of messagesOf(bytes, 1)) {
      const plane = new Plane(content);
      for (const event of plane.memoryEvents()) {
        requireRoom(events.length, MOST_ROWS, "memory events");
        events.push(event);
      }
      startedNs ||= Number(plane.stats().get("profile_start_time") ?? 0);
    }
  } catch (error) {
    throw error instanceof ForeignFault || error instanceof ForeignExcess
      ? error
      : new ForeignFault("it is cut off, or is no whole XSpace message");
  }
  return { events: events.sort((a, b) => a.ns - b.ns), startedNs };
}

class Plane {
  readonly #lines: Uint8Array[] = [];
  readonly #eventNames = new Map<number, string>();
  readonly #statNames = new Map<number, string>();
  readonly #stats: Uint8Array[] = [];

  constructor(content: Uint8Array) {
    readFields(
      content,
      [3, (reader) => keep(this.#lines, reader.bytes())],
      [4, (reader) => nameEntry(reader.bytes(), this.#eventNames)],
      [5, (reader) => nameEntry(reader.bytes(), this.#statNames)],
      [6, (reader) => keep(this.#stats, reader.bytes())],
    );
  }

  stats(): Map<string, Stat> {
    return new Map(this.#stats.map((content) => this.#stat(content)));
  }

  *memoryEvents(): Generator<MemoryEvent> {
    const kinds = new Map(
      [...this.#eventNames].filter(([, name]) => /^Memory(?:A|Dea)llocation$/.test(name)),
    );
    for (const line of kinds.size === 0 ? [] : this.#lines) {
      let startNs = 0;
      const events: Uint8Array[] = [];
      readFields(
        line,
        [3, (reader) => (startNs = Number(reader.int64()))],
        [4, (reader) => keep(events, reader.bytes())],
      );
      for (const content of events) {
        const event = this.#event(content, startNs, kinds);
        if (event !== null) {
          yield event;
        }
      }
    }
  }

  /** null: of another kind, or without an address. */
  #event(
    content: Uint8Array,
    startNs: number,
    kinds: ReadonlyMap<number, string>,
  ): MemoryEvent | null {
    let [kind, offsetPs] = [0, 0];
    const stats: Uint8Array[] = [];
    readFields(
      content,
      [1, (reader) => (kind = Number(reader.int64()))],
      [2, (reader) => (offsetPs = Number(reader.int64()))],
      [4, (reader) => keep(stats, reader.bytes())],
    );
    const name = kinds.get(kind);
    if (name === undefined) {
      return null;
    }
    const values = new Map(stats.map((each) => this.#stat(each)));
    const [number, text] = [
      (key: string) => {
        const value = values.get(key) ?? 0;
        if (typeof value !== "number" || !(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) {
          throw new ForeignFault(`a memory event has an impossible ${key}`);
        }
        return value;
      },
      (key: string) => String(values.get(key) ?? ""),
    ];
    return values.has("addr")
      ? {
          ns: startNs + offsetPs / 1000,
          isAllocation: name === "MemoryAllocation",
          allocator: text("allocator_name"),
          address: number("addr"),
          bytes: number("allocation_bytes"),
          allocated: number("bytes_allocated"),
          operation: text("tf_op"),
          region: text("region_type"),
        }
      : null;
  }

  #stat(content: Uint8Array): [string, Stat] {
    let name = 0;
    let value: Stat = "";
    readFields(
      content,
      [1, (reader) => (name = Number(reader.int64()))],
      [2, (reader) => (value = reader.double())],
      [3, (reader) => (value = Number(reader.uint64()))],
      [4, (reader) => (value = Number(reader.int64()))],
      [5, (reader) => (value = reader.string())],
      [7, (reader) => (value = this.#statNames.get(Number(reader.uint64())) ?? "")],
    );
    return [this.#statNames.get(name) ?? "", value];
  }
}

/** An entry of a map from a number to a message whose field 2 is a name. */
function nameEntry(content: Uint8Array, names: Map<number, string>): void {
  let key = 0;
  let name = "";
  readFields(
    content,
    [1, (reader) => (key = Number(reader.int64()))],
    [2, (reader) => readFields(reader.bytes(), [2, (inner) => (name = inner.string())])],
  );
  requireRoom(names.size, MOST_ROWS, "names");
  names.set(key, name);
}

function keep(messages: Uint8Array[], message: Uint8Array): void {
  requireRoom(messages.length, MOST_ROWS, "messages");
  messages.push(message);
}

function messagesOf(content: Uint8Array, field: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  readFields(content, [field, (reader) => keep(found, reader.bytes())]);
  return found;
}

function readFields(content: Uint8Array, ...fields: Field[]): void {
  const reader = new BinaryReader(content);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    const read = fields.find(([number]) => number === field)?.[1];
    if (read === undefined) {
      reader.skip(type, field);
    } else {
      read(reader);
    }
  }
}

/** An operation's name scopes, the outermost first: "adam/Sqrt_5" is "adam", "adam/Sqrt_5". */
export function scopesOf(operation: string): string[] {
  const names = operation.split("/").filter((name) => name !== "");
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}
