/**
 * The Python grammar, as WebAssembly. This file is as deep in the tree as the bundled program, which finds the grammar
 * relative to itself.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { readTree } from "./syntax/read_tree.js";
import type { SyntaxTree } from "./syntax/tree.js";

const GRAMMAR_PATH = fileURLToPath(
  new URL("../../grammars/tree-sitter-python.wasm", import.meta.url),
);

/** A file takes milliseconds; a hostile one must not delay the others. */
const LONGEST_PARSE_MS = 20_000;

/** The tree of a file's text; null if the parser does not finish. */
export type ParsePython = (text: string) => SyntaxTree | null;

let loaded: Promise<ParsePython> | null = null;

/** Loads the parser once. */
export function pythonParser(): Promise<ParsePython> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<ParsePython> {
  const { Language, Parser } = await import("web-tree-sitter");
  const runtime = createRequire(import.meta.url).resolve("web-tree-sitter/web-tree-sitter.wasm");
  await Parser.init({ wasmBinary: readFileSync(runtime) });
  const language = await Language.load(readFileSync(GRAMMAR_PATH));
  const parser = new Parser().setLanguage(language);
  return (text) => {
    const deadline = performance.now() + LONGEST_PARSE_MS;
    const tree = parser.parse(text, null, {
      progressCallback: () => performance.now() > deadline,
    });
    if (tree === null) {
      parser.reset();
      return null;
    }
    const cursor = tree.walk();
    try {
      return readTree(cursor, text);
    } finally {
      cursor.delete();
      tree.delete();
    }
  };
}
