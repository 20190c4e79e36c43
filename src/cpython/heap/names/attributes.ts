/** Attributes of an instance by name, in a dict or in the instance itself. */

import { float64At, uint32At } from "../../../model/base/columns.js";
import type { Address } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import type { ObjectGraph } from "../graph/graph.js";
import { readDictEntries, readKeys, readStr } from "../objects/small_objects.js";
import type { FieldNames } from "./field_names.js";
import { readIntAt } from "./values.js";

/** Include/cpython/object.h and Objects/moduleobject.c: unchanged from 3.9 to 3.15. */
const TYPE_DICT = 264;
const MODULE_DICT = 16;
const MOST_BASES = 16;
const MOST_VARIABLES = 4096;
const LONGEST_NAME = 200;
/** An object with more is no instance with attributes, but keeps entries by name. */
const MOST_ATTRIBUTES = 256;

/** An integer at the end of an attribute path ("queue.length"); null if there is none. */
export function countAt(objects: ObjectGraph, from: NodeId, way: string): number | null {
  // Small integers belong to the interpreter and are not nodes of the graph.
  const address = addressAt(objects, from, way);
  return address === null ? null : intAt(objects, address);
}

/** The object that an attribute path leads to; null if one of the attributes is missing. */
export function addressAt(objects: ObjectGraph, from: NodeId, way: string): Address | null {
  let node = from;
  let address: Address | null = null;
  for (const name of way.split(".")) {
    node = address === null ? from : objects.index.at(address);
    address = node === 0 ? null : attributeOf(objects, node, name);
    if (address === null) {
      return null;
    }
  }
  return address;
}

/** Attributes of an instance by name, with the address of each value: in its dict, in the instance, and in its slots. */
export function attributesOf(
  objects: ObjectGraph,
  node: NodeId,
  fields: FieldNames,
): Map<string, Address> {
  const { copy, layout, graph } = objects;
  const found = new Map<string, Address>(
    fields.valuesOf(float64At(graph.address, node), uint32At(graph.type, node)),
  );
  // An object with a dict of its own may have no values in place.
  const inItsDict = dictEntries(objects, node) ?? [];
  const named = inItsDict.length > 0 ? inItsDict : [...valuesInPlace(objects, node)];
  for (const { key, value } of named.slice(0, MOST_ATTRIBUTES)) {
    const name = value > 0 ? readStr(copy, layout, key, LONGEST_NAME) : null;
    if (name !== null) {
      found.set(name, value);
    }
  }
  return found;
}

/** Attributes of the classes of an instance, the nearest class first: constants that its methods read as `self.NAME`. */
export function classAttributesOf(objects: ObjectGraph, node: NodeId): Map<string, Address> {
  const { types, graph } = objects;
  const found = new Map<string, Address>();
  let row = uint32At(graph.type, node);
  for (let depth = 0; row >= 0 && depth < MOST_BASES; depth++) {
    for (const [name, value] of namesIn(objects, types.of(row).address + TYPE_DICT)) {
      if (!found.has(name)) {
        found.set(name, value);
      }
    }
    row = types.of(row).base;
  }
  return found;
}

/** Variables of a module by name. */
export function variablesOf(objects: ObjectGraph, module: NodeId): Map<string, Address> {
  return namesIn(objects, float64At(objects.graph.address, module) + MODULE_DICT);
}

/** Of the dict that a word refers to. */
function namesIn({ copy, layout }: ObjectGraph, at: Address): Map<string, Address> {
  const dict = copy.word(at);
  const entries =
    dict > 0 && dict % 8 === 0 ? readDictEntries(copy, layout, dict, MOST_VARIABLES) : null;
  return new Map(
    (entries ?? []).flatMap(({ key, value }) => {
      const name = readStr(copy, layout, key, LONGEST_NAME);
      return name === null ? [] : [[name, value]];
    }),
  );
}

/** An int that is no bool; null for any other object. */
export function intAt(objects: ObjectGraph, address: Address): number | null {
  const text = isInt(objects, address) ? readIntAt(objects, address) : null;
  return text === null ? null : Number(text);
}

function isInt({ copy, types }: ObjectGraph, address: Address): boolean {
  const type = copy.word(address + 8);
  const row = types.find(type >>> 0, Math.floor(type / 2 ** 32));
  return row >= 0 && types.name(row) === "int";
}

function attributeOf(objects: ObjectGraph, node: NodeId, name: string): Address | null {
  return inDict(objects, node, name) ?? inPlace(objects, node, name);
}

function inDict(objects: ObjectGraph, node: NodeId, name: string) {
  const { copy, layout } = objects;
  return (
    dictEntries(objects, node)?.find(({ key }) => readStr(copy, layout, key, LONGEST_NAME) === name)
      ?.value ?? null
  );
}

function dictEntries({ copy, layout, types, graph }: ObjectGraph, node: NodeId) {
  const object = float64At(graph.address, node);
  const row = uint32At(graph.type, node);
  const offset = types.of(row).managedDict ? -24 : types.of(row).dictOffset;
  const dict = offset === 0 ? 0 : copy.word(object + offset);
  return dict > 0 && dict % 8 === 0 ? readDictEntries(copy, layout, dict) : null;
}

function inPlace(objects: ObjectGraph, node: NodeId, name: string): Address | null {
  const { copy, layout } = objects;
  for (const { key, value } of valuesInPlace(objects, node)) {
    if (value > 0 && readStr(copy, layout, key, LONGEST_NAME) === name) {
      return value;
    }
  }
  return null;
}

/**
 * The type's shared keys name the values that follow an object or that it points to. Addresses of the name (a
 * str), of the value (0 if not set), and of the word that refers to it.
 */
export function* valuesInPlace(
  { copy, layout, types, graph }: ObjectGraph,
  node: NodeId,
): Iterable<{ readonly key: Address; readonly value: Address; readonly at: Address }> {
  const row = uint32At(graph.type, node);
  if (!types.of(row).managedDict) {
    return;
  }
  const object = float64At(graph.address, node);
  const keys = readKeys(copy, layout, copy.word(types.of(row).address + layout.heapTypeCachedKeys));
  let values = object + types.of(row).basicSize + layout.valuesStart;
  if (layout.values === "pointer") {
    values = copy.word(object - 32);
  } else if (layout.values === "tagged") {
    values = copy.word(object - 24) + 1;
  }
  for (let n = 0; keys !== null && n < keys.used; n++) {
    const key = keys.entriesAt + n * keys.entryBytes + (keys.entryBytes === 24 ? 8 : 0);
    const at = values + n * 8;
    yield { key: copy.word(key), value: copy.word(at), at };
  }
}
