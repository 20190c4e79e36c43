/**
 * Dicts and attributes read from outside (Objects/dictobject.c).
 *
 *   PyDictObject   ma_keys ──> dk_indices[size of the hash table] | entries: hash? key value, in order
 *                  ma_values ──> values[], where several dicts share their keys ("split")
 *
 * Up to 3.10 the keys hold the size of the hash table and every entry has its hash; from 3.11 on they hold
 * its logarithm, and keys that are all str have entries without a hash.
 */

import type { Address } from "../../model/base/units.js";
import { unreadableMemory } from "../../model/errors/errors.js";
import { isA, type PythonMemory, readText, TypeFlag, typeOf } from "./objects.js";

const MOST_ENTRIES = 2 ** 26;
const LONGEST_KEY = 1024;

interface DictEntry {
  readonly key: Address;
  readonly value: Address;
}

/** The entries of a dict in order, without deleted ones. */
export function* dictEntries(python: PythonMemory, dict: Address): Generator<DictEntry> {
  const { reader, layout } = python;
  if (!isA(python, dict, TypeFlag.Dict)) {
    throw unreadableMemory(reader.memory.name, dict, "expected a dict");
  }
  const values = reader.pointer(dict + layout.dict.values);
  yield* keyEntries(
    python,
    reader.pointer(dict + layout.dict.keys),
    values === 0 ? null : values + (layout.dict.valuesItems ?? 0),
  );
}

/** @param values address of the values if they are not next to their keys */
function* keyEntries(
  python: PythonMemory,
  keys: Address,
  values: Address | null,
): Generator<DictEntry> {
  const { reader } = python;
  const { start, count, size, key, value } = entryTable(python, keys);
  for (let index = 0; index < count; index++) {
    const at = start + index * size;
    const keyAddress = reader.pointer(at + key);
    const valueAddress = reader.pointer(values === null ? at + value : values + index * 8);
    if (keyAddress !== 0 && valueAddress !== 0) {
      yield { key: keyAddress, value: valueAddress };
    }
  }
}

interface EntryTable {
  readonly start: Address;
  readonly count: number;
  readonly size: number;
  readonly key: number;
  readonly value: number;
}

function entryTable({ reader, layout }: PythonMemory, keys: Address): EntryTable {
  const table = layout.dictKeys;
  const count = reader.int64(keys + table.entries);
  let indexBytes: number;
  let slots: number;
  let general = true;
  if (table.log2Size !== null && table.log2IndexBytes !== null && table.kind !== null) {
    slots = 2 ** Math.min(reader.uint8(keys + table.log2Size), 52);
    indexBytes = 2 ** Math.min(reader.uint8(keys + table.log2IndexBytes), 52);
    general = reader.uint8(keys + table.kind) === 0;
  } else {
    slots = reader.int64(keys + (table.size ?? 0));
    indexBytes = slots * (slots <= 0xff ? 1 : slots <= 0xffff ? 2 : slots <= 0xffffffff ? 4 : 8);
  }
  if (!(count >= 0 && count <= slots && count <= MOST_ENTRIES)) {
    throw unreadableMemory(reader.memory.name, keys, `a dict of ${count} entries`);
  }
  return {
    start: keys + table.indices + indexBytes,
    count,
    size: general ? table.entrySize : (table.unicodeEntrySize ?? 0),
    key: general ? table.entryKey : (table.unicodeEntryKey ?? 0),
    value: general ? table.entryValue : (table.unicodeEntryValue ?? 0),
  };
}

/** The value of a str key; null if there is none. Reads all entries. */
export function dictGet(python: PythonMemory, dict: Address, name: string): Address | null {
  return find(python, dictEntries(python, dict), name);
}

function find(python: PythonMemory, entries: Iterable<DictEntry>, name: string): Address | null {
  for (const { key, value } of entries) {
    if (isA(python, key, TypeFlag.Unicode) && readText(python, key, LONGEST_KEY) === name) {
      return value;
    }
  }
  return null;
}

/** An instance's own attribute, wherever its version of CPython keeps it; null if it has none. */
export function instanceAttribute(
  python: PythonMemory,
  object: Address,
  name: string,
): Address | null {
  return find(python, instanceEntries(python, object), name);
}

function* instanceEntries(python: PythonMemory, object: Address): Generator<DictEntry> {
  const { reader, layout } = python;
  const type = typeOf(python, object);
  const flags = reader.uint32(type + layout.type.flags);
  const { managedDictOffset, managedValuesOffset, managedDictTag } = layout.dict;
  if (managedDictOffset === null || (flags & TypeFlag.ManagedDict) === 0) {
    const offset = reader.int64(type + layout.type.dictOffset);
    const dict = offset > 0 ? reader.pointer(object + offset) : 0;
    if (dict !== 0) {
      yield* dictEntries(python, dict);
    }
    return;
  }
  const word = reader.pointer(object + managedDictOffset);
  const tagged = managedDictTag !== null && word % 2 === managedDictTag;
  if (word !== 0 && !tagged) {
    yield* dictEntries(python, word);
    return;
  }
  const values = inlineValues();
  if (values !== 0) {
    yield* keyEntries(python, reader.pointer(type + layout.type.heapCachedKeys), values);
  }

  function inlineValues(): Address {
    if (managedDictTag !== null) {
      return tagged ? word + 1 : 0; // 3.12
    }
    if (managedValuesOffset !== null) {
      return reader.pointer(object + managedValuesOffset); // 3.11
    }
    if ((flags & TypeFlag.InlineValues) === 0) {
      return 0;
    }
    const block = object + reader.int64(type + layout.type.basicSize);
    const valid = reader.uint8(block + (layout.dict.valuesValid ?? 0)) !== 0;
    return valid ? block + (layout.dict.valuesItems ?? 0) : 0;
  }
}

/** The members of a set. */
export function* setMembers({ reader, layout }: PythonMemory, set: Address): Generator<Address> {
  const slots = reader.int64(set + layout.set.mask) + 1;
  if (!(slots > 0 && slots <= MOST_ENTRIES)) {
    throw unreadableMemory(reader.memory.name, set, `a set of ${slots} slots`);
  }
  const table = reader.pointer(set + layout.set.table);
  for (let index = 0; index < slots; index++) {
    const at = table + index * layout.set.entrySize;
    const key = reader.pointer(at + layout.set.entryKey);
    // A removed entry leaves a placeholder whose hash is -1.
    if (key !== 0 && reader.int64(at + layout.set.entryKey + 8) !== -1) {
      yield key;
    }
  }
}
