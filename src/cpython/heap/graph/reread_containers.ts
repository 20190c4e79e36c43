/**
 * A program that runs while it is copied moves growing containers: a list may be copied with the address of an
 * array whose memory was copied before the array existed, so the list's items seem unreachable.
 *
 *   copy      list (late) ──> items     copied early, when other data was there
 *   renewed   list, now   ──> items, now
 *
 * So larger containers are read again, each with its table, between two steps of the program. Items added since
 * the copy are not in it and are left out. A tuple never moves, but a new one may have been copied while it was
 * filled, or be at the address of a former one. The same is true for numpy's arrays of objects, which programs replace
 * by longer ones.
 *
 * Pausing the program would avoid repeated attempts, but the pause would last for the whole pass over the
 * containers, which grows with the heap, and would be needed for each lookup.
 */

import { pause } from "../../../linux/hold/pause.js";
import type { Memory } from "../../../linux/memory/memory.js";
import { float64At, uint32At } from "../../../model/base/columns.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import type { HeapPages } from "../memory/heap_pages.js";
import type { HeapLayout } from "../memory/layout.js";
import { PAGE } from "../memory/page_directory.js";
import { wordAt } from "../memory/words.js";
import { referencesInArray } from "../objects/object_arrays.js";
import { isCount, readKeys, readWords } from "../objects/small_objects.js";
import {
  SHAPE_DICT,
  SHAPE_LIST,
  SHAPE_NDARRAY,
  SHAPE_ORDERED_DICT,
  SHAPE_SET,
  SHAPE_TUPLE,
  SHAPES,
  type TypeRow,
  type TypeTable,
} from "../objects/type_table.js";

/** Smaller containers hold little. */
const FEWEST_ITEMS = 32;
/** Number of attempts to read the container while it does not change. */
const MOST_ATTEMPTS = 8;
/** Limit for all containers together; few change at any moment. */
const MOST_RETRIES = 200;
const FILLED = 0.9;
/** Each container costs a few reads. */
const MOST_CONTAINERS = 20_000;
/** Headers of lists, dicts and sets. A set's first small table is inside the set and is not a separate one. */
const HEAD_WORDS = 6;
const ARRAY_HEAD_WORDS = 9;

/**
 * `address` and `row`: columns of the objects of the copy. Reports objects that no longer exist or are under
 * construction; their referrers may refer to other objects by now.
 */
export function renewContainers(
  copy: HeapPages,
  layout: HeapLayout,
  types: TypeTable,
  address: Float64Array,
  row: Uint32Array,
): readonly Address[] {
  const renewal = new ContainerRenewal(copy, layout, types);
  return largestContainers(copy, types, address, row)
    .filter((n) => !renewal.renew(float64At(address, n), uint32At(row, n)))
    .map((n) => float64At(address, n));
}

export class ContainerRenewal {
  /** All tables together are smaller than the heap; a larger claim is invalid. */
  #left: Bytes;
  #retries = MOST_RETRIES;
  #visits = MOST_CONTAINERS;
  /** Of one container: its first words in the copy, and now. */
  readonly #head = new Float64Array(ARRAY_HEAD_WORDS);
  readonly #now = new Uint32Array(ARRAY_HEAD_WORDS * 2);

  constructor(
    readonly copy: HeapPages,
    readonly layout: HeapLayout,
    readonly types: TypeTable,
  ) {
    this.#left = MOST_ATTEMPTS * copy.bytes;
  }

  /** Does the same for an object that is about to be visited, if it is a large container; `at`: its index. */
  visit(object: Address, type: TypeRow, at: number): void {
    const { copy, types } = this;
    const { shape } = types.of(type);
    const place = COUNT_AT[shape] ?? 0;
    const isLarge =
      shape === SHAPE_NDARRAY
        ? itemsOf(copy, types, object, type) >= FEWEST_ITEMS
        : place > 0 && at >= 0 && wordAt(copy.words, at + place / 4) >= FEWEST_ITEMS;
    if (isLarge && this.#visits > 0) {
      this.#visits -= 1;
      this.renew(object, type);
    }
  }

  /** Reads a container again. False if it no longer exists or is under construction. */
  renew(object: Address, type: TypeRow): boolean {
    return this.#renewInPlace(object, type) || this.#renewMoved(object, type);
  }

  /** Reads the table again of a container that is as in the copy, as nearly all are. False if it is not. */
  #renewInPlace(object: Address, type: TypeRow): boolean {
    const { copy, layout, types } = this;
    const { shape } = types.of(type);
    const words = shape === SHAPE_NDARRAY ? ARRAY_HEAD_WORDS : HEAD_WORDS;
    const at = copy.index(object);
    const head = this.#head;
    for (let n = 0; n < words; n++) {
      head[n] = at < 0 ? 0 : wordAt(copy.words, at + n * 2);
    }
    const isThere = head[1] === types.of(type).address && isCount(float64At(head, 0), layout);
    const table = isThere ? tableOf(copy, layout, shape, object, head) : null;
    if (table === null || !(table.bytes < this.#left)) {
      return false;
    }
    this.#left -= table.bytes;
    copy.renew(table.address, table.bytes);
    return (
      this.#isUnchanged(object, words) &&
      copy.index(table.address + table.bytes - 8) >= 0 &&
      isFilled(copy, object, table)
    );
  }

  /** Whether the first words of a container are now as in the copy, apart from its reference count. */
  #isUnchanged(object: Address, words: number): boolean {
    const now = new Uint8Array(this.#now.buffer, 0, words * 8);
    let isSame = this.copy.source.readInto(object, now) === now.length;
    for (let n = 1; n < words; n++) {
      isSame &&= wordAt(this.#now, n * 2) === this.#head[n];
    }
    return isSame;
  }

  /** Reads the container and its table until they belong together. */
  #renewMoved(object: Address, type: TypeRow): boolean {
    const { copy, layout, types } = this;
    const { source } = copy;
    const { shape } = types.of(type);
    const isTuple = shape === SHAPE_TUPLE;
    const headWords = shape === SHAPE_NDARRAY ? ARRAY_HEAD_WORDS : HEAD_WORDS;
    const items = copy.word(object + 16);
    for (let attempt = 0; ; attempt++) {
      if (attempt > 0) {
        if (attempt === MOST_ATTEMPTS || this.#retries-- <= 0) {
          return false;
        }
        pause();
        source.refresh(); // a moved table may be in newly mapped memory
      }
      const head = readWords(source, object, headWords);
      // Another object is there now, or none.
      const isAnother = isTuple && head?.[2] !== items;
      const isOther = head === null || head[1] !== types.of(type).address || isAnother;
      if (isOther || !isCount(float64At(head, 0), layout)) {
        return false;
      }
      const table = tableOf(source, layout, shape, object, head);
      if (table === null || !(table.bytes < this.#left)) {
        return true;
      }
      this.#left -= table.bytes;
      copy.renew(table.address, table.bytes);
      copy.renew(object, headWords * 8);
      // The table belonged to the container during the whole read, and was not a new one being filled.
      const whole = copy.index(table.address + table.bytes - 8) >= 0;
      const { knownBy } = table;
      const own = knownBy === null || copy.word(object + knownBy) === table.address;
      if (whole && own && isFilled(copy, object, table)) {
        return true;
      }
    }
  }
}

/** Number of items; -1 if it is no container or cannot be read. */
function itemsOf(copy: HeapPages, types: TypeTable, object: Address, type: TypeRow): number {
  const { shape } = types.of(type);
  const place = COUNT_AT[shape] ?? 0;
  return shape === SHAPE_NDARRAY
    ? referencesInArray(object, (address) => copy.word(address))
    : place > 0
      ? copy.word(object + place)
      : -1;
}

/** A dict or a set that grows puts its items into the new table one by one, after that table became its own. */
function isFilled(copy: HeapPages, object: Address, { items, stride, end, count }: Table): boolean {
  if (count === null) {
    return true;
  }
  let found = 0;
  for (let address = items; address < end; ) {
    let at = copy.index(address);
    const pageEnd = Math.min(end, address - (address % PAGE) + PAGE);
    for (; address < pageEnd; address += stride) {
      found += at >= 0 && wordAt(copy.words, at) > 0 ? 1 : 0;
      at += stride / 4;
    }
  }
  return found >= FILLED * copy.word(object + count);
}

/** Rows of the objects. */
function largestContainers(
  copy: HeapPages,
  types: TypeTable,
  address: Float64Array,
  row: Uint32Array,
): number[] {
  const found: { readonly n: number; readonly items: number }[] = [];
  const mayCount = Uint8Array.from({ length: types.count }, (_, type) => {
    const { shape } = types.of(type);
    return shape === SHAPE_NDARRAY || (COUNT_AT[shape] ?? 0) > 0 ? 1 : 0;
  });
  for (let n = 0; n < address.length; n++) {
    if (mayCount[uint32At(row, n)] === 0) {
      continue;
    }
    const items = itemsOf(copy, types, float64At(address, n), uint32At(row, n));
    if (items >= FEWEST_ITEMS) {
      found.push({ n, items });
    }
  }
  return found
    .sort((a, b) => b.items - a.items)
    .slice(0, MOST_CONTAINERS)
    .map(({ n }) => n);
}

/** By shape, where a container counts its items; 0: it is not a container. */
const COUNT_AT = new Uint8Array(SHAPES);
for (const shape of [SHAPE_LIST, SHAPE_TUPLE, SHAPE_DICT, SHAPE_ORDERED_DICT]) {
  COUNT_AT[shape] = 16;
}
COUNT_AT[SHAPE_SET] = 24;

interface Table {
  readonly address: Address;
  readonly bytes: Bytes;
  /**
   * Offsets of the table's address and of the number of items in the container; null if the table is part of
   * the container, and for a container that may have empty items.
   */
  readonly knownBy: Bytes | null;
  readonly count: Bytes | null;
  /** The first item's word, the number of items, and the end of the items. */
  readonly items: Address;
  readonly stride: Bytes;
  readonly end: Address;
}

/** Where the items are; null if they are not in a separate block. */
function tableOf(
  memory: Memory,
  layout: HeapLayout,
  shape: number,
  object: Address,
  head: Float64Array,
): Table | null {
  const word = (n: number) => float64At(head, n);
  if (shape === SHAPE_TUPLE) {
    // 16 size, then the items; from 3.14 on its hash before them
    const places = { knownBy: null, count: 16 };
    return plainTable(object + layout.tupleItems, word(2) * 8, 8, places);
  }
  if (shape === SHAPE_LIST) {
    // 16 size  24 items
    return plainTable(word(3), word(2) * 8, 8, { knownBy: 24, count: 16 });
  }
  if (shape === SHAPE_NDARRAY) {
    const items = referencesInArray(object, (address) => readWords(memory, address, 1)?.[0] ?? -1);
    return items > 0 ? plainTable(word(2), items * 8, 8, { knownBy: 16, count: null }) : null;
  }
  if (shape === SHAPE_SET) {
    // 24 used  32 mask  40 table: key, hash
    return plainTable(word(5), (word(4) + 1) * 16, 16, { knownBy: 40, count: 24 });
  }
  // 16 used  32 keys  40 values
  const keys = word(5) === 0 ? readKeys(memory, layout, word(4)) : null;
  if (keys === null) {
    return null;
  }
  const { address, bytes, entriesAt, entryBytes, used } = keys;
  return {
    address,
    bytes,
    knownBy: 32,
    count: 16,
    items: entriesAt + entryBytes - 8,
    stride: entryBytes,
    end: entriesAt + used * entryBytes,
  };
}

function plainTable(
  address: Address,
  bytes: Bytes,
  stride: Bytes,
  places: Pick<Table, "knownBy" | "count">,
): Table | null {
  return address > 0
    ? { ...places, address, bytes, items: address, stride, end: address + bytes }
    : null;
}
