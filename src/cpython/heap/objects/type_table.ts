/**
 * Finds which addresses are types, and the properties of their objects. A word is the address of a type only if
 * the memory there looks like one, and its own type, the type of that type and so on end at `type`:
 *
 *     object ── ob_type ──> T ── ob_type ──> metaclass ── ... ──> `type` ── ob_type ──> itself
 *
 * Every answer is cached, including negative ones, because the scan of a heap asks hundreds of millions of
 * times.
 */

import type { Memory } from "../../../linux/memory/memory.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import { GC_HEAD_BYTES, type HeapLayout, PRE_HEADER_BYTES } from "../memory/layout.js";
import { wordAt } from "../memory/words.js";
import { readCString } from "./small_objects.js";
import { readTypeName, type TypeName } from "./type_names.js";

/** Row of a {@link TypeTable}. */
export type TypeRow = number;

/** How an object's size and references are found. */
const SHAPE_PLAIN = 0;
export const SHAPE_INT = 1;
export const SHAPE_LIST = 2;
export const SHAPE_TUPLE = 3;
export const SHAPE_BYTES = 4;
export const SHAPE_STR = 5;
export const SHAPE_DICT = 6;
export const SHAPE_TYPE = 7;
export const SHAPE_SET = 8;
export const SHAPE_BYTEARRAY = 9;
export const SHAPE_ARRAY = 10;
export const SHAPE_DEQUE = 11;
export const SHAPE_NDARRAY = 12;
export const SHAPE_TENSOR = 13;
export const SHAPE_WEAKREF = 14;
export const SHAPE_MODULE = 15;
export const SHAPE_ORDERED_DICT = 16;
export const SHAPE_FRAME = 17;
export const SHAPE_LEAF = 18;
export const SHAPE_C_DATA = 19;
/** Keeps references in its own memory, in a form that only its C code knows. */
export const SHAPE_TABLED = 20;

/** Shapes of the built-in containers that grow. */
export const CONTAINER_SHAPES: ReadonlySet<number> = new Set([
  SHAPE_LIST,
  SHAPE_DICT,
  SHAPE_ORDERED_DICT,
  SHAPE_SET,
  SHAPE_DEQUE,
]);

/** Every shape is below this. */
export const SHAPES = 21;

/** Include/object.h: bits of tp_flags. */
const FLAG_INLINE_VALUES = 1 << 2;
const FLAG_MANAGED_WEAKREF = 1 << 3;
const FLAG_MANAGED_DICT = 1 << 4;
const FLAG_HEAPTYPE = 1 << 9;
const FLAG_READY = 1 << 12;
const FLAG_HAVE_GC = 1 << 14;
const SUBCLASS_SHAPES: readonly (readonly [bit: number, shape: number])[] = [
  [24, SHAPE_INT],
  [25, SHAPE_LIST],
  [26, SHAPE_TUPLE],
  [27, SHAPE_BYTES],
  [28, SHAPE_STR],
  [29, SHAPE_DICT],
  [31, SHAPE_TYPE],
];
/** By the name of a static type that the type is or derives from. */
const NAMED_SHAPES: Readonly<Record<string, number>> = {
  set: SHAPE_SET,
  frozenset: SHAPE_SET,
  bytearray: SHAPE_BYTEARRAY,
  "array.array": SHAPE_ARRAY,
  "collections.deque": SHAPE_DEQUE,
  "numpy.ndarray": SHAPE_NDARRAY,
  "torch._C._TensorBase": SHAPE_TENSOR,
  "torch._C.TensorBase": SHAPE_TENSOR,
  "weakref.ReferenceType": SHAPE_WEAKREF,
  weakref: SHAPE_WEAKREF,
  "weakref.ProxyType": SHAPE_WEAKREF,
  weakproxy: SHAPE_WEAKREF,
  "weakref.CallableProxyType": SHAPE_WEAKREF,
  weakcallableproxy: SHAPE_WEAKREF,
  frozendict: SHAPE_DICT,
  module: SHAPE_MODULE,
  "collections.OrderedDict": SHAPE_ORDERED_DICT,
  frame: SHAPE_FRAME,
  generator: SHAPE_FRAME,
  coroutine: SHAPE_FRAME,
  async_generator: SHAPE_FRAME,
  "_ctypes._CData": SHAPE_C_DATA,
  float: SHAPE_LEAF,
  complex: SHAPE_LEAF,
  // Modules/_queuemodule.c from 3.13 on, Modules/_elementtree.c, Modules/_pickle.c.
  "_queue.SimpleQueue": SHAPE_TABLED,
  "xml.etree.ElementTree.Element": SHAPE_TABLED,
  "_pickle.Pickler": SHAPE_TABLED,
};

// PyTypeObject, the part that is the same in all versions:
//   0 refcount  8 ob_type  16 ob_size  24 tp_name  32 tp_basicsize  40 tp_itemsize  48 tp_dealloc
//   168 tp_flags  208 tp_weaklistoffset  256 tp_base  264 tp_dict  288 tp_dictoffset
const TYPE_HEAD_BYTES = 296;
const LONGEST_CHAIN = 32;
const LARGEST_BASIC = 1 << 20;
/** module.Name, as in tp_name of a static type outside builtins. */
const STATIC_NAME = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$/;
const NOT_A_TYPE = -2;
const ABSENT = -1;

/** What the objects of one type have in common. */
export interface TypeFacts {
  readonly address: Address;
  readonly basicSize: Bytes;
  readonly itemSize: Bytes;
  readonly shape: number;
  /** GC head and pre-header, between a block's start and its object. */
  readonly preHeader: Bytes;
  readonly isGc: boolean;
  /** The type keeps a dict (and from 3.12 on a weak list) before the GC head. */
  readonly managedDict: boolean;
  /** Size of the attributes that follow each object; 0 if there are none. */
  readonly inlineValues: Bytes;
  /** 0 if there is none; negative until 3.11, counted from the object's end. */
  readonly dictOffset: number;
  readonly weakOffset: number;
  readonly isHeapType: boolean;
  readonly base: TypeRow;
}

/** sizeof(PyFloatObject): what follows in a subclass may refer to something. */
export const LEAF_BYTES: Bytes = 24;

/** Objects of the type never refer to anything: plain numbers, texts and bytes. */
export function refersToNothing(
  { shape, basicSize, managedDict, dictOffset }: TypeFacts,
  { compactBytes }: HeapLayout,
): boolean {
  const isPlain =
    shape === SHAPE_INT ||
    shape === SHAPE_BYTES ||
    (shape === SHAPE_STR && basicSize <= compactBytes + 8) ||
    (shape === SHAPE_LEAF && basicSize <= LEAF_BYTES);
  return isPlain && !managedDict && dictOffset === 0;
}

interface Near {
  readonly start: Address;
  readonly end: Address;
  readonly words: Uint32Array;
}

export class TypeTable {
  readonly #types: TypeFacts[] = [];
  readonly #names: (TypeName | undefined)[] = [];
  #slots = 1 << 12;
  #keyLow = new Uint32Array(this.#slots);
  #keyHigh = new Uint32Array(this.#slots);
  #rows = new Int32Array(this.#slots).fill(ABSENT);
  #used = 0;
  readonly #head = new Uint8Array(TYPE_HEAD_BYTES);
  /** Memory that was just read, which most words that may be types point into. */
  #near: Near = { start: 0, end: 0, words: new Uint32Array(0) };
  readonly #view = new DataView(this.#head.buffer);

  constructor(
    readonly memory: Memory,
    readonly layout: HeapLayout,
  ) {}

  /** `words` are the contents of the memory from `start` to `end`, 0 where they were not read. */
  setNear(start: Address, end: Address, words: Uint32Array): void {
    this.#near = { start, end, words };
  }

  /** The row of the type at an address given in halves; negative if there is none. */
  find(low: number, high: number): TypeRow {
    const mask = this.#slots - 1;
    let slot = Math.imul((low >>> 3) ^ (high << 7), 0x9e3779b1) >>> 4;
    for (slot &= mask; this.#rows[slot] !== ABSENT; slot = (slot + 1) & mask) {
      if (this.#keyLow[slot] === low && this.#keyHigh[slot] === high) {
        return this.#rows[slot] ?? 0;
      }
    }
    const row = this.#inspect(high * 2 ** 32 + low, 0);
    this.#remember(low, high, row);
    return row;
  }

  /** A row for what is counted in addition to Python's objects. */
  addKind(name: string): TypeRow {
    const none = { flags: 0, basicSize: 0, itemSize: 0, dictOffset: 0, weakOffset: 0 };
    return this.#add(0, { ...none, baseRow: ABSENT, name: { name, module: "" } });
  }

  get count(): number {
    return this.#types.length;
  }

  /** The type of a row that {@link find} or {@link addKind} returned. */
  of(row: TypeRow): TypeFacts {
    return this.#types[row] ?? missing(row);
  }

  /** Whether any type that was found has a shape. */
  hasShape(shape: number): boolean {
    return this.#types.some((type) => type.shape === shape);
  }

  /** `module.qualname` without `builtins.`. */
  name(row: TypeRow): string {
    return this.#nameOf(row).name;
  }

  /** "builtins" for built-in types. */
  module(row: TypeRow): string {
    return this.#nameOf(row).module;
  }

  #nameOf(row: TypeRow): TypeName {
    const { address, isHeapType } = this.of(row);
    return this.#nameAt(row, address, isHeapType);
  }

  #nameAt(row: TypeRow, address: Address, isHeapType: boolean): TypeName {
    let name = this.#names[row];
    if (name === undefined) {
      name = readTypeName(this.memory, this.layout, address, isHeapType);
      this.#names[row] = name;
    }
    return name;
  }

  #remember(low: number, high: number, row: TypeRow): void {
    if (this.#used * 2 >= this.#slots) {
      this.#grow();
    }
    const mask = this.#slots - 1;
    let slot = Math.imul((low >>> 3) ^ (high << 7), 0x9e3779b1) >>> 4;
    for (slot &= mask; this.#rows[slot] !== ABSENT; slot = (slot + 1) & mask) {
      if (this.#keyLow[slot] === low && this.#keyHigh[slot] === high) {
        return; // found in the meantime, as a metaclass or a base of another type
      }
    }
    this.#keyLow[slot] = low;
    this.#keyHigh[slot] = high;
    this.#rows[slot] = row;
    this.#used += 1;
  }

  #grow(): void {
    const [lows, highs, rows] = [this.#keyLow, this.#keyHigh, this.#rows];
    this.#slots *= 4;
    this.#keyLow = new Uint32Array(this.#slots);
    this.#keyHigh = new Uint32Array(this.#slots);
    this.#rows = new Int32Array(this.#slots).fill(ABSENT);
    this.#used = 0;
    for (let slot = 0; slot < rows.length; slot++) {
      if (rows[slot] !== ABSENT) {
        this.#remember(lows[slot] ?? 0, highs[slot] ?? 0, rows[slot] ?? 0);
      }
    }
  }

  /** Reads the memory at an address and, if it is a type, adds a row for it. */
  #inspect(address: Address, depth: number): TypeRow {
    const head = this.#head;
    if (this.#isOtherNear(address)) {
      return NOT_A_TYPE;
    }
    if (depth > LONGEST_CHAIN || this.memory.readInto(address, head) < TYPE_HEAD_BYTES) {
      return NOT_A_TYPE;
    }
    const view = this.#view;
    const word = (at: Bytes) => view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
    const flags = view.getUint32(168, true);
    const basicSize = word(32);
    const itemSize = word(40);
    const plausible =
      view.getUint32(172, true) === 0 &&
      basicSize >= 16 &&
      basicSize < LARGEST_BASIC &&
      itemSize < LARGEST_BASIC &&
      word(24) > 4096 &&
      ((flags & FLAG_READY) !== 0 || this.#isNeverReady(flags, word));
    if (!plausible) {
      return NOT_A_TYPE;
    }
    const meta = word(8);
    const base = word(256);
    const dictOffset = Number(view.getBigInt64(288, true));
    const weakOffset = Number(view.getBigInt64(208, true));
    // From here on, the buffer is used for the types that this one leads to.
    if (meta === address) {
      if (flags >>> 31 !== 1) {
        return NOT_A_TYPE;
      }
    } else {
      const row = this.#find(meta, depth);
      if (row < 0 || this.of(row).shape !== SHAPE_TYPE) {
        return NOT_A_TYPE;
      }
    }
    // `type` derives from `object`, whose type is `type`, so its base would lead back here.
    const baseRow = base === 0 || meta === address ? ABSENT : this.#find(base, depth);
    return this.#add(address, { flags, basicSize, itemSize, baseRow, dictOffset, weakOffset });
  }

  /** Whether the memory that was just read shows that no type is there, which costs no read. */
  #isOtherNear(address: Address): boolean {
    const { start, end, words } = this.#near;
    if (address < start || address + TYPE_HEAD_BYTES > end) {
      return false;
    }
    const at = (address - start) >>> 2;
    const isKnown = words[at + 2] !== 0 || words[at + 3] !== 0;
    const basicSize = words[at + 8] ?? 0;
    return (
      isKnown &&
      (words[at + 43] !== 0 || words[at + 9] !== 0 || basicSize < 16 || basicSize >= LARGEST_BASIC)
    );
  }

  /**
   * A static type that its module never makes ready, as 3.9 does with functools._lru_list_elem
   * (Modules/_functoolsmodule.c): its fields are not filled in, but objects of it exist. It is recognized by so
   * little that its name must match.
   */
  #isNeverReady(flags: number, word: (at: Bytes) => number): boolean {
    return (
      (flags & FLAG_HEAPTYPE) === 0 &&
      word(48) !== 0 &&
      word(256) === 0 &&
      word(264) === 0 &&
      STATIC_NAME.test(readCString(this.memory, word(24)) ?? "")
    );
  }

  #find(address: Address, depth: number): TypeRow {
    const low = address >>> 0;
    const high = Math.floor(address / 2 ** 32);
    const mask = this.#slots - 1;
    let slot = Math.imul((low >>> 3) ^ (high << 7), 0x9e3779b1) >>> 4;
    for (slot &= mask; this.#rows[slot] !== ABSENT; slot = (slot + 1) & mask) {
      if (this.#keyLow[slot] === low && this.#keyHigh[slot] === high) {
        return this.#rows[slot] ?? 0;
      }
    }
    const row = this.#inspect(address, depth + 1);
    this.#remember(low, high, row);
    return row;
  }

  #add(
    address: Address,
    type: {
      readonly flags: number;
      readonly basicSize: Bytes;
      readonly itemSize: Bytes;
      readonly baseRow: TypeRow;
      readonly dictOffset: number;
      readonly weakOffset: number;
      readonly name?: TypeName;
    },
  ): TypeRow {
    const { flags, basicSize, itemSize, baseRow, dictOffset, weakOffset } = type;
    const { values, managedWeakLists } = this.layout;
    const managedDict = values !== "dict" && (flags & FLAG_MANAGED_DICT) !== 0;
    const managedWeak = managedWeakLists && (flags & FLAG_MANAGED_WEAKREF) !== 0;
    const isGc = (flags & FLAG_HAVE_GC) !== 0;
    const isHeapType = (flags & FLAG_HEAPTYPE) !== 0;
    const inline = values === "inline" && (flags & FLAG_INLINE_VALUES) !== 0;
    const row = this.#names.push(type.name) - 1;
    this.#types.push({
      address,
      basicSize,
      itemSize,
      shape: this.#shapeOf(flags, baseRow, () => this.#nameAt(row, address, isHeapType).name),
      preHeader: (isGc ? GC_HEAD_BYTES : 0) + (managedDict || managedWeak ? PRE_HEADER_BYTES : 0),
      isGc,
      managedDict,
      inlineValues: inline ? this.#inlineBytes(address) : 0,
      dictOffset: managedDict || Math.abs(dictOffset) > LARGEST_BASIC ? 0 : dictOffset,
      weakOffset: weakOffset > 0 && weakOffset < LARGEST_BASIC ? weakOffset : 0,
      isHeapType,
      base: baseRow,
    });
    return row;
  }

  #shapeOf(flags: number, baseRow: TypeRow, name: () => string): number {
    const named = (flags & FLAG_HEAPTYPE) === 0 || baseRow < 0 ? name() : "";
    const own = Object.hasOwn(NAMED_SHAPES, named) ? NAMED_SHAPES[named] : undefined;
    if (own !== undefined) {
      return own;
    }
    const inherited = baseRow >= 0 ? this.of(baseRow).shape : SHAPE_PLAIN;
    if (inherited !== SHAPE_PLAIN) {
      return inherited;
    }
    for (const [bit, shape] of SUBCLASS_SHAPES) {
      if ((flags >>> bit) & 1) {
        return shape;
      }
    }
    // Heap types of the standard library's modules (array.array, deque since 3.12) are named in the same way.
    const late = name();
    const ofModule = Object.hasOwn(NAMED_SHAPES, late) && late.includes(".");
    return (ofModule ? NAMED_SHAPES[late] : undefined) ?? SHAPE_PLAIN;
  }

  /**
   * _PyInlineValuesSize of pycore_dict.h: for each attribute one byte of order and one word, plus one word of
   * sizes.
   */
  #inlineBytes(type: Address): Bytes {
    const words = new Uint32Array(8);
    const bytes = new Uint8Array(words.buffer);
    const at = type + this.layout.heapTypeCachedKeys;
    if (this.memory.readInto(at, bytes.subarray(0, 8)) < 8) {
      return 0;
    }
    const keys = wordAt(words, 0);
    if (keys === 0 || this.memory.readInto(keys, bytes) < 32) {
      return 0;
    }
    const attributes = (words[4] ?? 0) + (words[6] ?? 0); // dk_usable, dk_nentries
    return attributes > 254 ? 0 : Math.ceil(attributes / 8) * 8 + (attributes + 1) * 8;
  }
}

function missing(row: TypeRow): never {
  throw new RangeError(`no type has row ${row}`);
}
