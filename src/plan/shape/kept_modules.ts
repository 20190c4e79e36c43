/**
 * Modules that a quantized checkpoint keeps as they are: `modules_to_not_convert` (mxfp4, fp8, AWQ), `llm_int8_skip_modules`
 * (bitsandbytes), `ignore` (compressed-tensors), `ignored_layers` (fp8), `exclude_modules` (ModelOpt).
 */
import type { ModelConfig } from "./config.js";

/** Plain values, because the page of a plan holds them. */
export interface KeptModules {
  /** Names of modules, or of what contains them: "lm_head", "model.layers.0.mlp". */
  readonly names: readonly string[];
  /** With `*` for any characters: "model.layers.*.self_attn". */
  readonly patterns: readonly string[];
}

const LISTS = [
  "modules_to_not_convert",
  "llm_int8_skip_modules",
  "ignore",
  "ignored_layers",
  "exclude_modules",
] as const;
/** Lists name each matrix of each layer at most. */
const MOST_NAMES = 50_000;
const MOST_PATTERNS = 200;
const LONGEST = 300;

/** @returns null where nothing is kept, and the expressions that are not read */
export function keptModules(config: ModelConfig): {
  kept: KeptModules | null;
  unread: readonly string[];
} {
  const all = LISTS.flatMap((name) => {
    const value = config.values[name];
    return Array.isArray(value) ? value.slice(0, MOST_NAMES) : [];
  }).filter((each): each is string => typeof each === "string" && each !== "");
  const names: string[] = [];
  const patterns: string[] = [];
  const unread: string[] = [];
  for (const each of new Set(all)) {
    const plain = plainPattern(each);
    if (plain === null || (plain.includes("*") && patterns.length >= MOST_PATTERNS)) {
      unread.push(each.slice(0, 60));
    } else if (plain.includes("*")) {
      patterns.push(plain);
    } else {
      names.push(plain);
    }
  }
  return { kept: names.length + patterns.length === 0 ? null : { names, patterns }, unread };
}

/** "re:.*\.mlp\.gate$" as "*.mlp.gate": expressions come with the checkpoint, so none is run. */
function plainPattern(text: string): string | null {
  if (text.length > LONGEST) {
    return null;
  }
  const isExpression = text.startsWith("re:");
  const plain = (isExpression ? text.slice(3) : text)
    .replace(/^\^/, "")
    .replace(/\$$/, "")
    .replaceAll("\\d+", "*")
    .replaceAll("\\.", ".")
    .replaceAll(".*", isExpression ? "*" : ".*");
  return /^[\w.*-]+$/.test(plain) ? plain.replace(/\*+/g, "*") : null;
}

/** Whether one of a module's names, each from the model's root, is kept. */
export function isKept({ names, patterns }: KeptModules, paths: readonly string[]): boolean {
  const listed = setOf(names);
  return paths.some(
    (path) =>
      piecesOf(path).some((piece) => listed.has(piece)) ||
      patterns.some((pattern) => prefixesOf(path).some((prefix) => matches(pattern, prefix))),
  );
}

const SETS = new WeakMap<readonly string[], ReadonlySet<string>>();

function setOf(names: readonly string[]): ReadonlySet<string> {
  const known = SETS.get(names) ?? new Set(names);
  SETS.set(names, known);
  return known;
}

/** All that a list may call a module by: "a.b.c" is also "a.b", "b.c", "a", "b" and "c". */
function piecesOf(path: string): string[] {
  const parts = path.split(".");
  return parts.flatMap((_, from) =>
    parts.slice(from).map((_, length) => parts.slice(from, from + length + 1).join(".")),
  );
}

function prefixesOf(path: string): string[] {
  const parts = path.split(".");
  return parts.map((_, index) => parts.slice(0, index + 1).join("."));
}

/** In time of the product of both lengths at most: each `*` takes the first place where the rest of its piece is. */
function matches(pattern: string, text: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (!text.startsWith(first)) {
    return false;
  }
  let at = first.length;
  for (const [index, piece] of rest.entries()) {
    if (index === rest.length - 1) {
      return text.length - piece.length >= at && text.endsWith(piece);
    }
    const found = text.indexOf(piece, at);
    if (found < 0) {
      return false;
    }
    at = found + piece.length;
  }
  return at === text.length;
}
