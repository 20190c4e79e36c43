/**
 * A path through the object graph as text:
 *
 *     module app -> CACHE -> dict["users"] -> list[...] -> .history
 *
 * Only names of modules, attributes and string keys are shown, never other values of the program. The dict
 * between an object and its attributes is not a separate step.
 */

import { float64At, itemAt, uint32At } from "../../../model/base/columns.js";
import type { Address } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import { FIRST_OBJECT, type ObjectGraph, ROOT_NAMES, ROOT_STACKS } from "../graph/graph.js";
import { readDictEntries, readStr } from "../objects/small_objects.js";
import {
  SHAPE_DEQUE,
  SHAPE_DICT,
  SHAPE_FRAME,
  SHAPE_LIST,
  SHAPE_MODULE,
  SHAPE_ORDERED_DICT,
  SHAPE_SET,
  SHAPE_STR,
  SHAPE_TUPLE,
  SHAPE_TYPE,
} from "../objects/type_table.js";
import { valuesInPlace } from "./attributes.js";
import { FieldNames } from "./field_names.js";
import { withoutRepeats } from "./repeated_steps.js";

const MODULE_DICT = 16;
const TYPE_DICT = 264;
const LONGEST_KEY = 60;
const MOST_ENTRIES = 2 ** 22;
/** Faster to read than to cache. */
const FEW_ENTRIES = 32;
/** PyContextVar (pycore_context.h): the header, then var_name. */
const CONTEXT_VARIABLE_NAME = 16;
const CONTEXT_VARIABLE = /(?:^|\.)ContextVar$/;

export class StepNames {
  /** For dicts that were read: the key of each value. */
  readonly #keys = new Map<NodeId, Map<Address, Address>>();
  #keysHeld = 0;

  readonly #fields: FieldNames;

  constructor(readonly objects: ObjectGraph) {
    this.#fields = new FieldNames(objects.copy, objects.layout, objects.types);
  }

  /** The text of a path that begins with a root. */
  words(path: readonly NodeId[]): string[] {
    const words: string[] = [];
    let at = 0;
    const [root, first] = path;
    if (root !== undefined && root < FIRST_OBJECT) {
      at = 1;
      if (first !== undefined && this.#shape(first) === SHAPE_MODULE) {
        words.push(`module ${this.#moduleName(first)}`);
      } else if (first === undefined || first === this.objects.modules) {
        words.push(first === undefined ? (ROOT_NAMES[root] as string) : "sys.modules");
      } else if (root === ROOT_STACKS) {
        const behind = path[2];
        const local = behind === undefined ? null : this.#localOf(first, behind);
        words.push(...(local ?? this.#heldByThread(first, behind === undefined)));
        at = local === null ? 1 : 2;
      } else {
        words.push(ROOT_NAMES[root] as string, this.describe(first));
      }
    }
    for (; at + 1 < path.length; at++) {
      const from = itemAt(path, at);
      const to = itemAt(path, at + 1);
      const behind = path[at + 2];
      if (this.#attributeDict(from) === this.#address(to)) {
        if (behind === undefined) {
          words.push("__dict__");
        } else {
          const name = this.#keyOf(to, behind);
          words.push(this.#shape(from) === SHAPE_MODULE ? name : `.${name}`);
          at += 1;
        }
        continue;
      }
      if (this.#isThreadLocal(from) && this.#shape(to) === SHAPE_DICT) {
        const value = path[at + 3];
        if (behind !== undefined && value !== undefined && this.#shape(behind) === SHAPE_DICT) {
          words.push(`.${this.#keyOf(behind, value)}`);
          at += 2;
        }
        continue;
      }
      const variable = behind === undefined ? null : this.#functionVariable(from, to, behind);
      if (variable !== null) {
        words.push(variable);
        at += 1;
      } else {
        words.push(...this.#steps(path[at - 1] ?? 0, from, to));
      }
    }
    return withoutRepeats(words);
  }

  /**
   * It has a dict of attributes for each thread; the dicts are no separate steps.
   *
   *     local ──> dict of threads ──> dict of attributes ──> value
   */
  #isThreadLocal(node: NodeId): boolean {
    const { types, graph } = this.objects;
    for (let row = uint32At(graph.type, node); row >= 0; row = types.of(row).base) {
      if (types.name(row) === "_thread._local") {
        return true;
      }
    }
    return false;
  }

  /** From a thread to the contents of its frames; `last`: the path ends there. */
  #heldByThread(node: NodeId, last: boolean): readonly string[] {
    const words = this.#wordsTo(node);
    if (words !== null) {
      return words;
    }
    const isFrame = this.#shape(node) === SHAPE_FRAME;
    const thread = isFrame ? this.objects.frames.threadOf(this.#address(node)) : null;
    // A frame is named together with the local that holds the object.
    return [
      thread ?? (ROOT_NAMES[ROOT_STACKS] as string),
      ...(last || !isFrame ? [this.describe(node)] : []),
    ];
  }

  /** Up to 3.10 a frame is an object on the path, and several may hold one local: the outermost is named. */
  #localOf(frame: NodeId, node: NodeId): readonly string[] | null {
    const runs =
      this.#shape(frame) === SHAPE_FRAME &&
      this.objects.frames.threadOf(this.#address(frame)) !== null;
    return runs ? this.#wordsTo(node) : null;
  }

  #wordsTo(node: NodeId): readonly string[] | null {
    const words = this.objects.frames.wordsTo(this.#address(node));
    const named = words?.at(-1)?.startsWith("local ") ?? false;
    return words === null || named ? words : [...words, this.describe(node)];
  }

  /** An object by its kind, if no step to it has a name: "class app.Cache", "function", "dict". */
  describe(node: NodeId): string {
    const type = this.typeName(node);
    switch (this.#shape(node)) {
      case SHAPE_MODULE:
        return `module ${this.#moduleName(node)}`;
      case SHAPE_TYPE: {
        const row = this.objects.types.find(...halves(this.#address(node)));
        return row >= 0 ? `class ${this.objects.types.name(row)}` : type;
      }
      default:
        return type;
    }
  }

  typeName(node: NodeId): string {
    return node < FIRST_OBJECT
      ? (ROOT_NAMES[node] as string)
      : this.objects.types.name(uint32At(this.objects.graph.type, node));
  }

  /** For items of one container that are shown together: "list[...]". */
  anyOf(container: NodeId): string {
    return `${this.typeName(container)}[...]`;
  }

  /** `dict` is where the object keeps its attributes. */
  holdsAttributes(object: NodeId, dict: NodeId): boolean {
    return this.#attributeDict(object) === this.#address(dict);
  }

  #steps(before: NodeId, from: NodeId, to: NodeId): readonly string[] {
    const type = this.typeName(from);
    if (to >= this.objects.end) {
      return ["storage"];
    }
    if (this.#shape(from) === SHAPE_FRAME) {
      const words = this.objects.frames.wordsBetween(this.#address(from), type, this.#address(to));
      const isNamed = type === "frame" && this.#shape(before) === SHAPE_FRAME; // named by its generator
      return words?.slice(isNamed ? 1 : 0) ?? [`local of ${type}`];
    }
    // A cell is where a function keeps a local that inner functions share; it is not a separate step.
    return type === "cell" ? [] : [this.#step(from, to)];
  }

  #step(from: NodeId, to: NodeId): string {
    const type = this.typeName(from);
    switch (this.#shape(from)) {
      case SHAPE_DICT:
      case SHAPE_ORDERED_DICT: {
        const key = this.#keyText(from, to);
        return key === null ? `${type}[...]` : `${type}["${key}"]`;
      }
      case SHAPE_LIST:
      case SHAPE_TUPLE:
      case SHAPE_SET:
      case SHAPE_DEQUE:
        return `${type}[...]`;
      default: {
        const { method } = this.objects.layout.python;
        if (type === "method" && this.#points(from, method.self, to)) {
          return `.__self__ (${this.typeName(to)})`; // a method does not name its owner
        }
        const attribute = this.#inlineAttribute(from, to) ?? this.#field(from, to);
        if (attribute !== null) {
          return `.${attribute}`;
        }
        const context = this.#contextVariable(from, to);
        if (context !== null) {
          return `context variable ${context}`;
        }
        return type === "function" ? this.#functionField(from, to) : `field of ${type}`;
      }
    }
  }

  #field(from: NodeId, to: NodeId): string | null {
    const row = uint32At(this.objects.graph.type, from);
    return this.#fields.nameOf(this.#address(from), row, this.#address(to));
  }

  #functionField(from: NodeId, to: NodeId): string {
    const { globals, defaults, keywordDefaults, closure } = this.objects.frames.functionFields;
    const fields = { globals, defaults, "keyword defaults": keywordDefaults, closure };
    const field = Object.entries(fields).find(([, offset]) => this.#points(from, offset, to));
    return field ? `function ${field[0]}` : "field of function";
  }

  /** A function holds `value` in one of its own variables, through its closure or its defaults. */
  #functionVariable(from: NodeId, tuple: NodeId, value: NodeId): string | null {
    const { copy, graph, layout, frames } = this.objects;
    if (this.#shape(tuple) !== SHAPE_TUPLE || this.typeName(from) !== "function") {
      return null;
    }
    const places = copy.word(this.#address(tuple) + 16);
    if (!(places > 0 && places * 8 <= float64At(graph.shallow, tuple))) {
      return null; // another object is there now
    }
    const place = Array.from({ length: places }).findIndex((_, n) =>
      this.#points(tuple, layout.tupleItems + n * 8, value),
    );
    const variables = place < 0 ? null : frames.ofFunction(this.#address(from));
    if (variables === null) {
      return null;
    }
    const { names, positional } = variables;
    if (this.#points(from, frames.functionFields.closure, tuple)) {
      const name = names[names.length - places + place];
      return name === undefined ? null : `closure variable ${name}`;
    }
    const isDefault = this.#points(from, frames.functionFields.defaults, tuple);
    const name = isDefault ? names[positional - places + place] : undefined;
    return name === undefined ? null : `default of ${name}`;
  }

  /**
   * Nodes of a context keep each value after its variable (Python/hamt.c); a variable keeps its default and the
   * value that was last requested.
   */
  #contextVariable(from: NodeId, to: NodeId): string | null {
    const { copy, graph, index } = this.objects;
    const type = this.typeName(from);
    if (CONTEXT_VARIABLE.test(type)) {
      return this.#text(copy.word(this.#address(from) + CONTEXT_VARIABLE_NAME));
    }
    if (!type.includes("hamt")) {
      return null;
    }
    for (let offset = 24; offset < float64At(graph.shallow, from); offset += 8) {
      if (this.#points(from, offset, to)) {
        const variable = copy.word(this.#address(from) + offset - 8);
        return CONTEXT_VARIABLE.test(this.typeName(index.at(variable)))
          ? this.#text(copy.word(variable + CONTEXT_VARIABLE_NAME))
          : null;
      }
    }
    return null;
  }

  #points(from: NodeId, offset: number, to: NodeId): boolean {
    return this.objects.copy.word(this.#address(from) + offset) === this.#address(to);
  }

  #keyOf(dict: NodeId, value: NodeId): string {
    return this.#keyText(dict, value) ?? "[...]";
  }

  /** The string key under which a dict holds an object; null if the object is a key or has another kind of key. */
  #keyText(dict: NodeId, value: NodeId): string | null {
    const key = this.#keyFor(dict, this.#address(value));
    return key === undefined ? null : this.#text(key);
  }

  /**
   * If several keys lead to one value, the first one counts. The keys of a large dict are cached, because many
   * paths lead through it; the cache is cleared when it becomes too large.
   */
  #keyFor(dict: NodeId, value: Address): Address | undefined {
    const known = this.#keys.get(dict);
    if (known !== undefined) {
      return known.get(value);
    }
    const { copy, layout } = this.objects;
    const entries = readDictEntries(copy, layout, this.#address(dict), MOST_ENTRIES) ?? [];
    if (entries.length <= FEW_ENTRIES) {
      return entries.find((entry) => entry.value === value)?.key;
    }
    if (this.#keysHeld + entries.length > MOST_ENTRIES) {
      this.#keys.clear();
      this.#keysHeld = 0;
    }
    const keys = new Map(entries.reverse().map((entry) => [entry.value, entry.key]));
    this.#keys.set(dict, keys);
    this.#keysHeld += entries.length;
    return keys.get(value);
  }

  #text(address: Address): string | null {
    const { copy, layout, types } = this.objects;
    // A key of another type may look like text, but its bytes would be values of the program.
    const type = types.find(...halves(copy.word(address + 8)));
    if (type < 0 || types.of(type).shape !== SHAPE_STR) {
      return null;
    }
    const text = readStr(copy, layout, address, LONGEST_KEY + 1);
    if (text === null) {
      return null;
    }
    return text.length > LONGEST_KEY ? `${text.slice(0, LONGEST_KEY)}…` : text;
  }

  #moduleName(node: NodeId): string {
    const { copy, layout } = this.objects;
    const dict = copy.word(this.#address(node) + MODULE_DICT);
    const entries = readDictEntries(copy, layout, dict) ?? [];
    const entry = entries.find(({ key }) => readStr(copy, layout, key, 9) === "__name__");
    return (entry === undefined ? null : this.#text(entry.value)) ?? "?";
  }

  /** Address of the attribute dict of a module, class or instance; -1 if it has none. */
  #attributeDict(node: NodeId): Address {
    if (node < FIRST_OBJECT) {
      return -1;
    }
    const { copy, types, graph } = this.objects;
    const object = this.#address(node);
    const row = uint32At(graph.type, node);
    switch (types.of(row).shape) {
      case SHAPE_MODULE:
        return copy.word(object + MODULE_DICT);
      case SHAPE_TYPE:
        return copy.word(object + TYPE_DICT);
      default:
        if (types.of(row).managedDict) {
          return copy.word(object - 24);
        }
        return types.of(row).dictOffset > 0 ? copy.word(object + types.of(row).dictOffset) : -1;
    }
  }

  /** The attribute of an instance that keeps its values without a dict. */
  #inlineAttribute(from: NodeId, to: NodeId): string | null {
    const wanted = this.#address(to);
    for (const { key, value } of valuesInPlace(this.objects, from)) {
      if (value === wanted) {
        return this.#text(key);
      }
    }
    return null;
  }

  #shape(node: NodeId): number {
    return node < FIRST_OBJECT
      ? -1
      : this.objects.types.of(uint32At(this.objects.graph.type, node)).shape;
  }

  #address(node: NodeId): Address {
    return float64At(this.objects.graph.address, node);
  }
}

function halves(address: Address): [low: number, high: number] {
  return [address >>> 0, Math.floor(address / 2 ** 32)];
}
