/** Shared by the rules about caching decorators. */
import type { FileFacts } from "../flow/file_facts.js";
import type { Scope } from "../scopes/scope.js";
import { keyword, positionals } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";

export interface CacheDecorator {
  readonly node: SyntaxNode;
  /** "functools.lru_cache". */
  readonly name: string;
  readonly isBounded: boolean;
}

const CACHES =
  /(?:^|\.)(?:lru_cache|cache|alru_cache|cached|memoize|memoized|memoise|async_lru|acached|async_cache|ttl_cache|lfu_cache|fifo_cache|typed_lru_cache|cachedmethod|simple_cache|multicached)$/;
/** These keep results elsewhere, or for each instance. */
const OTHER_CACHES =
  /(?:^|\.)(?:django|flask_caching|st|streamlit|cache_page|pytest|joblib|diskcache|redis|app|memory|Memory)\./;

/** The caching decorator of a function; null if it has none. */
export function cacheOf(scope: Scope, file: FileFacts): CacheDecorator | null {
  for (const node of scope.decorators) {
    const callee = node.kind === "call" ? (node.child("function") ?? node) : node;
    const name = file.names.resolve(callee) ?? callee.text;
    if (CACHES.test(name) && !OTHER_CACHES.test(name) && !name.startsWith(".") && isKnown(name)) {
      return { node, name, isBounded: isBounded(node, name, file) };
    }
  }
  return null;
}

/** Decorators of other libraries may have their own limits. */
function isKnown(name: string): boolean {
  return (
    !name.includes(".") ||
    /^(?:functools|cachetools|async_lru|aiocache|asyncache|methodtools|toolz|cytoolz|memoization|theine|cache|lru)\./.test(
      name,
    )
  );
}

function isBounded(node: SyntaxNode, name: string, file: FileFacts): boolean {
  if (node.kind !== "call") {
    return /lru_cache$/.test(name); // 128 entries by default
  }
  const size =
    keyword(node, "maxsize") ??
    keyword(node, "max_size") ??
    keyword(node, "ttl") ??
    positionals(node)[0];
  if (size === undefined) {
    return /lru_cache$|ttl_cache|lfu_cache|fifo_cache/.test(name);
  }
  if (size.kind === "none") {
    return false;
  }
  if (size.kind === "dictionary" || size.text === "dict()") {
    return false; // cachetools.cached(cache={})
  }
  const value = file.names.valueOf(size);
  return (
    value.kind !== "none" &&
    value.kind !== "dictionary" &&
    !/float\(['"]inf|math\.inf/.test(value.text)
  );
}
