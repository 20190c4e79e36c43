/**
 * A value that a program replaces all the time (results = concatenate(results, more)) is never in a copy
 * together with its name: the name is copied with the address of a value that was created after its memory had
 * been copied.
 *
 *   copy      dict of names (late) ──> value     copied early: free memory then
 *   renewed   dict of names, now   ──> value, now: a new object, and so are objects created with it
 *
 * So objects that refer to unknown addresses are read again, together with their current referents. An object
 * that turns out to be gone is removed, and its referrers are read again as well.
 */

import { pause } from "../../../linux/hold/pause.js";
import type { AddressRange } from "../../../linux/memory/memory.js";
import { float64At, uint32At } from "../../../model/base/columns.js";
import type { Address, Bytes, Millis } from "../../../model/base/units.js";
import type { HeapPages } from "../memory/heap_pages.js";
import type { HeapLayout } from "../memory/layout.js";
import { ownBytes } from "../objects/object_size.js";
import { isCount, readKeys, readWords } from "../objects/small_objects.js";
import {
  refersToNothing,
  SHAPE_BYTES,
  SHAPE_DEQUE,
  SHAPE_DICT,
  SHAPE_INT,
  SHAPE_LEAF,
  SHAPE_LIST,
  SHAPE_MODULE,
  SHAPE_NDARRAY,
  SHAPE_SET,
  SHAPE_STR,
  SHAPE_TUPLE,
  SHAPE_TYPE,
  type TypeRow,
  type TypeTable,
} from "../objects/type_table.js";
import type { ObjectColumns, ObjectRow } from "./node_columns.js";
import { References } from "./references.js";
import { UnknownObjects } from "./unknown_objects.js";

/** Limit for all passes together: half a second. */
const MOST_VISITED = 4_000_000;
/** Most objects read again; each costs several reads. */
const MOST_RENEWED = 2_000;
const MOST_VALUES = 5_000;
/** Steps from a removed object to its referrers, and so on. */
const MOST_PASSES = 4;
/** Attempts to catch the program between two steps; copying a large value may take several. */
const MOST_ATTEMPTS = 8;
/** If no object is found at an address this often in a row, the reference is stale. */
const FORGOTTEN = 3;
/**
 * Objects of C libraries lead to memory that never is an object, and a program may have thousands of them. Once
 * this many objects of a type have led to nothing, the others get one attempt each, and later none.
 */
const FRUITLESS = 1;
const MOST_FRUITLESS = 8;
const LONGEST_PAUSES_MS: Millis = 200;
/** Limit for an object or its table; further references are left out. */
const LARGEST_PIECE: Bytes = 16 * 2 ** 20;
/** In place of a type. */
const STACK: TypeRow = -1;
/** Shapes with a known size. */
const HEAD_BYTES: Bytes = 256;
const WITHOUT_REFERENCES: ReadonlySet<number> = new Set([
  SHAPE_STR,
  SHAPE_BYTES,
  SHAPE_INT,
  SHAPE_LEAF,
]);
/**
 * Their references have no names: sequences, and the fields of modules and types outside their dicts, which may hold
 * stale words.
 */
const NAMELESS: ReadonlySet<number> = new Set([
  SHAPE_LIST,
  SHAPE_TUPLE,
  SHAPE_SET,
  SHAPE_DEQUE,
  SHAPE_MODULE,
  SHAPE_TYPE,
]);
/** Limit for the object itself, without tables: larger C objects rarely name a value. */
const LARGEST_NAMESPACE: Bytes = 4096;

/**
 * The live objects that `columns` does not contain; afterwards the copy contains them. `alreadyGone`: objects of
 * `columns` that no longer exist. `stacks`: where frames keep their locals, from 3.11 on.
 */
export function renewValues(
  copy: HeapPages,
  layout: HeapLayout,
  types: TypeTable,
  columns: ObjectColumns,
  alreadyGone: readonly Address[],
  stacks: readonly AddressRange[],
): readonly ObjectRow[] {
  copy.source.refresh(); // a value may lie where nothing was mapped before
  const renewal = new ValueRenewal(copy, layout, types, columns.address, alreadyGone);
  const { address, type, shallow, room } = columns;
  let gone = -1;
  let left = MOST_VISITED;
  for (let pass = 0; pass < MOST_PASSES && renewal.gone > gone; pass++) {
    gone = renewal.gone;
    for (let n = 0; n < address.length && left-- > 0 && !renewal.isOver; n++) {
      const row = uint32At(type, n);
      const bytes = uint32At(room, n);
      if (mayName(types.of(row).shape) && bytes <= LARGEST_NAMESPACE) {
        const object = float64At(address, n);
        if (renewal.mayBeOutdated(object, row, bytes)) {
          renewal.renew({
            address: object,
            type: row,
            shallow: float64At(shallow, n),
            room: bytes,
          });
        }
      }
    }
  }
  // Locals come last, because they also hold objects under construction.
  for (const stack of stacks) {
    renewal.renewStack(stack);
  }
  return renewal.values;
}

/** A named value is in an attribute, a dict, or a C field. */
function mayName(shape: number): boolean {
  return !WITHOUT_REFERENCES.has(shape) && !NAMELESS.has(shape);
}

class ValueRenewal {
  readonly values: ObjectRow[] = [];
  readonly #unknown: UnknownObjects;
  /** References as the copy has them. */
  readonly #copied: References;
  /** References as they are now: tables are read again before their entries are followed. */
  readonly #present: References;
  readonly #head = new Uint32Array(HEAD_BYTES / 4);
  /** Ranges read again at the current attempt. */
  #readAgain: AddressRange[] = [];
  /** By type: how many consecutive objects of it led to no new object. */
  readonly #fruitless = new Map<TypeRow, number>();
  #renewed = 0;
  #pausedMs: Millis = 0;

  constructor(
    readonly copy: HeapPages,
    readonly layout: HeapLayout,
    readonly types: TypeTable,
    addresses: Float64Array,
    gone: readonly Address[],
  ) {
    this.#unknown = new UnknownObjects(copy, addresses, gone);
    const edge = () => undefined;
    const owns = (table: Address, bytes: Bytes) => this.#copyAgain(table, bytes);
    this.#copied = new References(copy, layout, types, this.#unknown, { edge, owns: edge });
    this.#present = new References(copy, layout, types, this.#unknown, { edge, owns });
  }

  /** How many objects of the copy were found to be gone. */
  get gone(): number {
    return this.#unknown.gone.size;
  }

  get isOver(): boolean {
    return this.#renewed >= MOST_RENEWED || this.values.length >= MOST_VALUES;
  }

  /** Whether an object of the copy refers to unknown addresses and may lead to new objects. */
  mayBeOutdated(address: Address, type: TypeRow, room: Bytes): boolean {
    if (this.#isFruitless(type, MOST_FRUITLESS)) {
      return false;
    }
    this.#unknown.forget();
    this.#copied.visit(address, type, room);
    const { areFound, gone, known } = this.#unknown;
    return areFound && !gone.has(address) && !known.has(address);
  }

  renew(object: ObjectRow): void {
    const { address, type } = object;
    if (this.#typeAt(address) === type) {
      this.#take(() => this.#visitAgain(object), type);
    } else {
      this.#unknown.gone.add(address);
    }
  }

  renewStack({ start, end }: AddressRange): void {
    const visit = () => this.#copied.range(start, end - start);
    if (this.#unknown.during(visit).length > 0) {
      this.#take(() => {
        this.#copyAgain(start, end - start);
        visit();
      }, STACK);
    }
  }

  /** False for a dict or a stack, because all their references are real. */
  #isFruitless(type: TypeRow, most: number): boolean {
    const isExact = type === STACK || this.types.of(type).shape === SHAPE_DICT;
    return !isExact && (this.#fruitless.get(type) ?? 0) >= most;
  }

  /** Adds the objects that are referred to now, and those that they refer to in turn. `type`: the visited object's type. */
  #take(visitAgain: () => void, type: TypeRow): void {
    const waiting = [{ visit: visitAgain, type }];
    for (let next = waiting.pop(); next !== undefined && !this.isOver; next = waiting.pop()) {
      const { visit, type } = next;
      const forgotten = this.#isFruitless(type, FRUITLESS) ? 0 : FORGOTTEN;
      const found = this.values.length;
      let [missedBefore, alike] = ["", 0];
      for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
        this.#renewed += 1;
        this.#readAgain = [];
        const valuesBefore = this.values.length;
        const addresses = this.#unknown.during(visit);
        for (const address of addresses) {
          const value = this.#valueAt(address);
          if (value === null) {
            continue;
          }
          this.#unknown.known.add(address);
          if (!this.#isStaticType(value)) {
            this.values.push(value);
            if (!WITHOUT_REFERENCES.has(this.types.of(value.type).shape)) {
              waiting.push({ visit: () => this.#visit(value), type: value.type });
            }
          }
        }
        if (this.values.length > valuesBefore) {
          this.#keepRead();
        }
        const missed = addresses.filter((address) => !this.#unknown.known.has(address));
        alike = missed.join() === missedBefore ? alike + 1 : 0;
        missedBefore = missed.join();
        if (missed.length === 0 || alike >= forgotten) {
          for (const address of missed) {
            this.#unknown.known.add(address);
          }
          break;
        }
        if (!this.#waited()) {
          break;
        }
      }
      const isFruitful = this.values.length > found;
      this.#fruitless.set(type, isFruitful ? 0 : (this.#fruitless.get(type) ?? 0) + 1);
    }
  }

  /**
   * Lets the program continue for a moment, and reads its new mappings. Returns false if all waits together reached
   * their limit.
   */
  #waited(): boolean {
    if (this.#pausedMs >= LONGEST_PAUSES_MS) {
      return false;
    }
    const started = performance.now();
    pause();
    const isThere = this.copy.source.refresh();
    this.#pausedMs += performance.now() - started;
    return isThere;
  }

  #visitAgain(object: ObjectRow): void {
    const { address, type, room } = object;
    const before = this.types.of(type).preHeader;
    this.#copyAgain(address - before, before + room);
    this.#visit(object);
  }

  /** Visits the references of an object, with the current contents of its table. */
  #visit({ address, type, room }: ObjectRow): void {
    const { copy, types } = this;
    // For other tables, a visit gives the address and size.
    if (types.of(type).shape === SHAPE_LIST) {
      this.#copyAgain(copy.word(address + 24), copy.word(address + 16) * 8);
    } else if (types.of(type).shape === SHAPE_NDARRAY) {
      const dimensions = copy.words[copy.index(address + 24)] ?? 0;
      this.#copyAgain(copy.word(address + 32), dimensions * 16);
    } else if (types.of(type).shape === SHAPE_DICT) {
      const keys = readKeys(copy.source, this.layout, copy.word(address + 32));
      this.#copyAgain(keys?.address ?? 0, keys?.bytes ?? 0);
    }
    this.#present.visit(address, type, room);
  }

  #copyAgain(start: Address, bytes: Bytes): void {
    if (start > 0 && bytes > 0) {
      const length = Math.min(bytes, LARGEST_PIECE);
      this.copy.renew(start, length);
      this.#readAgain.push({ start, end: start + length });
    }
  }

  /** By the time its references are followed, a name would have another value, which is not in the graph. */
  #keepRead(): void {
    for (const { start, end } of this.#readAgain) {
      this.copy.keep(start, end - start);
    }
  }

  /** A type that is part of a library exists from the start, so it is never a new value. */
  #isStaticType({ address, type }: ObjectRow): boolean {
    const isType = this.types.of(type).shape === SHAPE_TYPE;
    const row = isType ? this.types.find(address >>> 0, Math.floor(address / 2 ** 32)) : -1;
    return row >= 0 && !this.types.of(row).isHeapType;
  }

  /** The type of the object at an address now; negative if there is none. */
  #typeAt(address: Address): TypeRow {
    const [count = 0, type = 0] = readWords(this.copy.source, address, 2) ?? [];
    return isCount(count, this.layout)
      ? this.types.find(type >>> 0, Math.floor(type / 2 ** 32))
      : -1;
  }

  /** The object at an address now, after copying it again; null if there is none. */
  #valueAt(address: Address): ObjectRow | null {
    const { copy, layout, types } = this;
    const row = this.#typeAt(address);
    if (row < 0) {
      return null;
    }
    this.#head.fill(0);
    copy.source.readInto(address, new Uint8Array(this.#head.buffer));
    const own = ownBytes(types.of(row), layout, this.#head, 0, Number.MAX_SAFE_INTEGER);
    const before = types.of(row).preHeader;
    // Only the object's own bytes, because the copy of what follows belongs to another moment.
    this.#copyAgain(address - before, own);
    if (copy.index(address) < 0 || this.#typeAt(address) !== row) {
      return null; // the copy has no room for it, or it was freed meanwhile
    }
    const values = types.of(row).inlineValues;
    const isLeaf = refersToNothing(types.of(row), layout);
    const room = isLeaf ? (this.#head[0] ?? 0) : own - before + values;
    return { address, type: row, shallow: own + values, room };
  }
}
