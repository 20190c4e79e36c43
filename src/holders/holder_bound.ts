/** The bound of a container that drops old items, or takes no new ones, when it is full. */

import type { Holder, ObjectGraph } from "../cpython/heap/index.js";
import {
  attributesOf,
  classAttributesOf,
  intAt,
  variablesOf,
} from "../cpython/heap/names/attributes.js";
import { FieldNames } from "../cpython/heap/names/field_names.js";
import { lastAtMost } from "../cpython/heap/objects/owned_buffers.js";
import { CONTAINER_SHAPES, SHAPE_MODULE, SHAPE_TYPE } from "../cpython/heap/objects/type_table.js";
import { float64At, uint32At } from "../model/base/columns.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import { pathTo } from "../model/heap/heap_paths.js";

/** Objects/dequeobject.c and Modules/_functoolsmodule.c: unchanged from 3.9 to 3.15. */
const DEQUE_MAXLEN = 64;
const LRU_CACHE = 72;
const LRU_MAXSIZE = 96;
/** INT_MAX and SEM_VALUE_MAX, which multiprocessing.Queue() has as its bound, mean that there is none. */
const MOST_BOUND = 2 ** 31 - 1;
const DEQUE = /(?:^|\.)deque$/;
const LRU_WRAPPER = /_lru_cache_wrapper$/;

/**
 * The bound of the holder, of the cache whose dict it is, or of the object that wraps it; 0 if there is none. An object
 * inside an item of a bounded container is not bounded by it.
 */
export function boundOf(objects: ObjectGraph, { node, entries }: Holder): number {
  const { graph, copy, paths, index } = objects;
  const isOf = (each: NodeId | undefined, type: RegExp): each is NodeId =>
    each !== undefined && type.test(typeName(objects, each));
  if (isOf(node, DEQUE)) {
    const maxlen = bounded(copy.word(float64At(graph.address, node) + DEQUE_MAXLEN));
    return maxlen || wrapperBound(objects, node, entries);
  }
  const cache = pathTo(paths, node)
    .slice(-2)
    .find((each) => isOf(each, LRU_WRAPPER));
  if (cache === undefined) {
    return wrapperBound(objects, node, entries);
  }
  const address = float64At(graph.address, cache);
  // Only if its dict is at the expected offset; another layout proves nothing.
  return index.at(copy.word(address + LRU_CACHE)) === 0
    ? 0
    : bounded(copy.word(address + LRU_MAXSIZE));
}

/** -1 or None means no bound. */
function bounded(word: number): number {
  return word > 0 && word < MOST_BOUND ? word : 0;
}

/** Names of attributes that hold a bound, in lower case and without underscores: `_Cache__maxsize` is "maxsize". */
const BOUND =
  /^(?:max(?:size|len|length|entries|items|keys|count|elements|records|num|cachesize|queuesize|capacity)|capacity|(?:cache|lru|queue|buffer|history)(?:size|limit|capacity|max)|(?:size|entry|item|count|length)?limit)$/;
/** What a cache whose items have sizes has used of its bound. */
const USED = /^(?:curr?(?:ent)?size|usedsize|totalsize)$/;
/** `_Cache__maxsize`: a private name, after the class that defines it. */
const MANGLED = /^_+[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*?__(?=\w)/;
/** Classes and attributes that are expected to be bounded. */
const BOUNDED_KIND =
  /cache|lru|lfu|memo|queue|fifo|buffer|ring|deque|window|bounded|limited|history|recent/i;
/** Has no attributes; a dict may be those of an instance. */
const PLAIN =
  /^(?:list|tuple|dict|set|frozenset|cell|frame|(?:collections\.)?(?:deque|OrderedDict))$/;
const MOST_OWNERS = 8;
/** A container may exceed its bound while an item is put in. */
const MOST_OVER = { share: 1.02, items: 2 };

/**
 * The bound that an attribute of the container states, if it is of a subclass, or an attribute of an object that has it as
 * an attribute: queue.Queue.maxsize, cachetools.Cache._Cache__maxsize, `self.max_entries`. An object that also has other
 * containers may bound those, so its name or that of the attribute has to mean something bounded. A bound that is
 * exceeded bounds nothing.
 */
function wrapperBound(objects: ObjectGraph, holder: NodeId, entries: number): number {
  if (entries === 0) {
    return 0;
  }
  const fields = new FieldNames(objects.copy, objects.layout, objects.types);
  for (const owner of [holder, ...ownersOf(objects, holder)]) {
    const attributes = attributesOf(objects, owner, fields);
    let [bound, used] = [0, 0];
    for (const [attribute, address] of [...attributes, ...classAttributesOf(objects, owner)]) {
      const name = attribute.replace(MANGLED, "").replaceAll("_", "").toLowerCase();
      if (BOUND.test(name)) {
        bound ||= bounded(intAt(objects, address) ?? 0);
      } else if (USED.test(name)) {
        used ||= intAt(objects, address) ?? 0;
      }
    }
    if (bound > 0 && (owner === holder || isMeant(objects, owner, holder, attributes))) {
      // The bound may count bytes, or whatever the program measures: then a share of it is known.
      const items = used > 0 && used !== entries ? Math.round((bound * entries) / used) : bound;
      if (isKept(items, entries)) {
        return items;
      }
    }
  }
  return moduleBound(objects, holder, entries);
}

function isKept(bound: number, entries: number): boolean {
  return entries <= MOST_OVER.share * bound + MOST_OVER.items;
}

/**
 * A constant of the module that has the container as a variable, if their names agree: `ORDERS` and `MAX_ORDERS`, `_row_cache`
 * and `ROW_CACHE_SIZE`. A name like `MAX_SIZE` alone counts for a variable that is named after something bounded.
 */
function moduleBound(objects: ObjectGraph, holder: NodeId, entries: number): number {
  const { graph, types, paths } = objects;
  const isModule = (node: NodeId) =>
    node >= graph.firstObject && types.of(uint32At(graph.type, node)).shape === SHAPE_MODULE;
  for (const module of pathTo(paths, holder).filter(isModule)) {
    const variables = [...variablesOf(objects, module)];
    const own = variables.filter(([, at]) => at === float64At(graph.address, holder));
    for (const [name, address] of variables) {
      const isNamed = own.some(([variable]) => boundsByName(name, variable));
      const bound = isNamed ? bounded(intAt(objects, address) ?? 0) : 0;
      if (bound > 0 && isKept(bound, entries)) {
        return bound;
      }
    }
  }
  return 0;
}

/** Words that name a bound. */
const BOUND_WORDS = new Set(
  "max maximum limit size maxsize maxlen len length entries items keys count capacity".split(" "),
);
const UPPERMOST = /max|limit|size|capacity/;

function boundsByName(constant: string, variable: string): boolean {
  const wordsOf = (name: string) => name.toLowerCase().split("_").filter(Boolean);
  const kept = wordsOf(variable);
  const rest = wordsOf(constant).filter((word) => !kept.includes(word));
  const isBound = rest.every((word) => BOUND_WORDS.has(word)) && UPPERMOST.test(rest.join("_"));
  const isShared = rest.length < wordsOf(constant).length;
  return constant !== variable && isBound && (isShared || BOUNDED_KIND.test(variable));
}

/** Whether a bound of an object is that of the container in one of its attributes. */
function isMeant(
  objects: ObjectGraph,
  owner: NodeId,
  holder: NodeId,
  attributes: ReadonlyMap<string, number>,
): boolean {
  const { graph, index, types } = objects;
  const containers = new Set<NodeId>();
  for (const [name, address] of attributes) {
    const node = index.at(address);
    if (node === holder && BOUNDED_KIND.test(name)) {
      return true;
    }
    if (node !== 0 && CONTAINER_SHAPES.has(types.of(uint32At(graph.type, node)).shape)) {
      containers.add(node);
    }
  }
  return BOUNDED_KIND.test(typeName(objects, owner)) || containers.size === 1;
}

/** Objects that have the container as an attribute: in their dict, in themselves, or in a slot. */
function ownersOf(objects: ObjectGraph, container: NodeId): NodeId[] {
  const { graph, types } = objects;
  const isInstance = (node: NodeId) =>
    node >= graph.firstObject &&
    !PLAIN.test(typeName(objects, node)) &&
    ![SHAPE_MODULE, SHAPE_TYPE].includes(types.of(uint32At(graph.type, node)).shape);
  return referrersOf(objects, container).flatMap((referrer) =>
    typeName(objects, referrer) === "dict"
      ? referrersOf(objects, referrer).filter(isInstance)
      : isInstance(referrer)
        ? [referrer]
        : [],
  );
}

/** A few of the nodes that refer to one. */
function referrersOf({ graph }: ObjectGraph, node: NodeId): NodeId[] {
  const { edgeTo, edgeStart } = graph;
  const found = new Set<NodeId>();
  let edge = edgeTo.indexOf(node);
  for (; edge >= 0 && found.size < MOST_OWNERS; edge = edgeTo.indexOf(node, edge + 1)) {
    found.add(lastAtMost(edgeStart.length, (row) => uint32At(edgeStart, row), edge));
  }
  return [...found];
}

/** "" for a root. */
function typeName({ graph }: ObjectGraph, node: NodeId): string {
  return node < graph.firstObject ? "" : (graph.typeNames[uint32At(graph.type, node)] ?? "");
}
