/** The kind of container that an expression creates. */
import { bare, integerValue, keyword, positionals } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import type { Names } from "./names.js";

export type ContainerKind = "list" | "dict" | "set" | "deque" | "queue";

export interface Container {
  readonly kind: ContainerKind;
  /** It drops old entries, or holds them weakly. */
  readonly isBounded: boolean;
  /** It creates missing entries (a defaultdict) of this kind. */
  readonly elements: ContainerKind | "bounded" | null;
  /** It has entries from the start. */
  readonly isFilled: boolean;
}

const CONSTRUCTORS: Record<string, ContainerKind> = {
  list: "list",
  "typing.List": "list",
  dict: "dict",
  set: "set",
  "collections.deque": "deque",
  "collections.OrderedDict": "dict",
  "collections.defaultdict": "dict",
  "collections.Counter": "dict",
  "collections.UserDict": "dict",
  "queue.Queue": "queue",
  "queue.LifoQueue": "queue",
  "queue.PriorityQueue": "queue",
  "queue.SimpleQueue": "queue",
  "asyncio.Queue": "queue",
  "asyncio.LifoQueue": "queue",
  "asyncio.PriorityQueue": "queue",
  "multiprocessing.Queue": "queue",
  "multiprocessing.JoinableQueue": "queue",
  "multiprocessing.SimpleQueue": "queue",
  "trio.open_memory_channel": "queue",
};

const LITERALS: Record<string, ContainerKind> = {
  list: "list",
  list_comprehension: "list",
  dictionary: "dict",
  dictionary_comprehension: "dict",
  set: "set",
  set_comprehension: "set",
};

const BOUNDED =
  /(?:^|\.)(?:Weak\w+|(?:T?LRU|LFU|FIFO|RR|TTL|TLRU|MRU|LRI|Expiring)_?(?:Cache|Dict)\w*|LRU|ExpiringDict|BoundedDict|RingBuffer)$/i;

/** null for an expression that creates no container. */
export function containerOf(value: SyntaxNode, names: Names): Container | null {
  const node = bare(value);
  const literal = LITERALS[node.kind];
  if (literal !== undefined) {
    return plain(literal, node.children.length > 0);
  }
  if (node.kind === "boolean_operator" || node.kind === "conditional_expression") {
    // `given or {}`, `{} if given is None else given`
    for (const child of node.children) {
      const container = containerOf(child, names);
      if (container !== null) {
        return container;
      }
    }
    return null;
  }
  const callee = node.kind === "call" ? node.child("function") : null;
  const name = callee === null ? null : names.resolve(callee);
  if (name === null) {
    return null;
  }
  if (BOUNDED.test(name)) {
    return { kind: "dict", isBounded: true, elements: null, isFilled: false };
  }
  const factory = fieldFactory(node, name, names);
  if (factory !== null) {
    return factory;
  }
  const kind = CONSTRUCTORS[name] ?? CONSTRUCTORS[IMPLIED[name] ?? ""];
  return kind === undefined ? null : constructed(kind, node, names);
}

/** Names that identify a container even without an import. */
const IMPLIED: Record<string, string> = {
  deque: "collections.deque",
  defaultdict: "collections.defaultdict",
  OrderedDict: "collections.OrderedDict",
  Counter: "collections.Counter",
};

/** `field(default_factory=list)` of dataclasses, attrs and pydantic. */
function fieldFactory(node: SyntaxNode, name: string, names: Names): Container | null {
  if (!/(?:^|\.)(?:field|Field|ib|attrib|Factory|PrivateAttr)$/.test(name)) {
    return null;
  }
  const factory = keyword(node, "default_factory") ?? keyword(node, "factory");
  const made = factory ?? (name.endsWith("Factory") ? (positionals(node)[0] ?? null) : null);
  if (made === null) {
    const fallback = keyword(node, "default") ?? positionals(node)[0];
    return fallback === undefined ? null : containerOf(fallback, names);
  }
  if (made.kind === "lambda") {
    const body = made.child("body");
    return body === null ? null : containerOf(body, names);
  }
  const resolved = names.resolve(made) ?? "";
  const kind = CONSTRUCTORS[resolved] ?? CONSTRUCTORS[IMPLIED[resolved] ?? ""];
  return kind === undefined || kind === "queue" ? null : plain(kind, false);
}

function constructed(kind: ContainerKind, call: SyntaxNode, names: Names): Container {
  const args = positionals(call);
  if (kind === "deque") {
    const limit = keyword(call, "maxlen") ?? args[1] ?? null;
    return { ...plain(kind, args.length > 0), isBounded: limit !== null && limit.kind !== "none" };
  }
  if (kind === "queue") {
    const limit = keyword(call, "maxsize") ?? args[0] ?? null;
    const size = limit === null ? 0 : integerValue(limit);
    return { ...plain(kind, false), isBounded: size === null || size > 0 };
  }
  const [factory] = args;
  const name = names.resolve(call.child("function") ?? call) ?? "";
  if (factory !== undefined && name.endsWith("defaultdict")) {
    const body = factory.kind === "lambda" ? factory.child("body") : null;
    const made = body === null ? null : containerOf(body, names);
    const resolved = names.resolve(factory) ?? "";
    const elements =
      made === null ? (CONSTRUCTORS[resolved] ?? CONSTRUCTORS[IMPLIED[resolved] ?? ""]) : made.kind;
    const isBounded = made?.isBounded === true;
    return { ...plain("dict", false), elements: isBounded ? "bounded" : (elements ?? null) };
  }
  return plain(kind, args.length > 0 || call.child("arguments")?.children.length !== 0);
}

function plain(kind: ContainerKind, isFilled: boolean): Container {
  return { kind, isBounded: false, elements: null, isFilled };
}
