/**
 * Chooses the command for a command line that does not name one, from its first word:
 *
 * | first word | command |
 * |---|---|
 * | 4242 | `attach 4242` |
 * | a recording | `summary`; `live` if it is still being written and stdout is a terminal; two: `diff` |
 * | an allocator snapshot, several | `gpu` |
 * | a core file | `heap` |
 * | two saved heaps | `heap diff` |
 * | a log with out-of-memory messages | `gpu oom` |
 *
 * Files are recognized by their content. For every other file, one line names the program that opens it.
 */

import {
  describeForeign,
  type FileKind,
  identifyFile,
  openRecordingAt,
} from "../../inspect/index.js";
import { nearNames } from "../../model/base/near_miss.js";
import { shellWord } from "../../model/base/shell_word.js";
import { badUsage, fileNotFound, oneLine, TidemarkError } from "../../model/errors/errors.js";
import { notOpened } from "../../model/errors/file_errors.js";
import { guessFile } from "./guess.js";

/** The words with the command in front. Throws TidemarkError if no command opens the first word. */
export function withCommand(words: readonly string[], commands: readonly string[]): string[] {
  const [first = "", second = ""] = words;
  if (/^\d+$/.test(first)) {
    return ["attach", ...words];
  }
  const kind = kindOf(first, commands);
  const two = second !== "" && !second.startsWith("-") && isKind(second, kind);
  switch (kind) {
    case "recording":
      return [two ? "diff" : grows(first) && process.stdout.isTTY ? "live" : "summary", ...words];
    case "pickle":
      return ["gpu", ...words];
    case "core":
      return ["heap", ...words];
    case "out-of-memory log":
      return ["gpu", "oom", ...words];
    case "saved heap":
      if (two) {
        return ["heap", "diff", ...words];
      }
  }
  throw notOpened(first, ...remedyOf(kind, first));
}

function kindOf(word: string, commands: readonly string[]): FileKind {
  try {
    return identifyFile(word);
  } catch (error) {
    if (!(error instanceof TidemarkError) || error.id !== fileNotFound("").id) {
      throw error;
    }
    throw nothingCalled(word, commands);
  }
}

/** Commands of other profilers and other words that people try. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ["record", "run"],
  ["profile", "run"],
  ["start", "run"],
  ["flamegraph", "report"],
  ["html", "report"],
  ["table", "summary"],
  ["stats", "summary"],
  ["tree", "report"],
  ["view", "report"],
  ["show", "summary"],
  ["dump", "stacks"],
  ["threads", "stacks"],
  ["objects", "heap"],
  ["memory", "ledger"],
  ["leak", "diagnose"],
  ["leaks", "diagnose"],
  ["compare", "diff"],
  ["convert", "export"],
  ["list", "ps"],
  ["oom", "gpu oom"],
  ["cuda", "gpu"],
]);

/** A word that is neither a command nor a file. */
function nothingCalled(word: string, commands: readonly string[]): TidemarkError {
  const [near] = nearNames(word, commands);
  const command = SYNONYMS.get(word) ?? near;
  const file = guessFile(word);
  if (/^[a-z-]+$/i.test(word) && (command !== undefined || file === "")) {
    const guess = command === undefined ? "" : `did you mean ${command}? `;
    return badUsage(`unknown command '${word}'`, `${guess}see tidemark --help`);
  }
  return badUsage(
    `there is no file and no command ${shellWord(word)}`,
    file === "" ? "see tidemark --help" : file,
  );
}

function isKind(path: string, kind: FileKind): boolean {
  try {
    return identifyFile(path) === kind;
  } catch {
    return false;
  }
}

/** `summary` reports that a recording is damaged. */
function grows(path: string): boolean {
  try {
    return !openRecordingAt(path).complete;
  } catch {
    return false;
  }
}

/**
 * Names the kind of a file, and the command that reads that kind: "a recording; read it with: tidemark summary
 * app.tidemark". undefined if the file cannot be read.
 */
export function otherFileText(path: string): string | undefined {
  let kind: FileKind;
  try {
    kind = identifyFile(path);
  } catch {
    return undefined;
  }
  const word = shellWord(path);
  const [what, next] = readerOf(kind, word) ?? remedyOf(kind, path);
  return oneLine([what, next].filter((part) => part !== "").join("; "));
}

/** undefined for what {@link remedyOf} knows. */
function readerOf(kind: FileKind, word: string): [what: string, next: string] | undefined {
  switch (kind) {
    case "recording":
      return ["a recording", `read it with: tidemark summary ${word}`];
    case "pickle":
      return [
        "a pickle",
        `if it is an allocator snapshot: tidemark gpu ${word}; if tracemalloc wrote it: tidemark import ${word}`,
      ];
    case "core":
      return ["a core file", `read it with: tidemark heap ${word}, or tidemark ledger ${word}`];
    case "out-of-memory log":
      return ["a log with out-of-memory messages", `read it with: tidemark gpu oom ${word}`];
    default:
      return undefined;
  }
}

/** What the file is, and what opens it. */
function remedyOf(kind: FileKind, path: string): [what: string, next: string] {
  const word = shellWord(path);
  switch (kind) {
    case "saved heap":
      return ["a saved heap", `compare two: tidemark heap diff ${word} LATER`];
    case "pool":
      return ["a pool file that an agent wrote without a recorder", `run: tidemark import ${word}`];
    case "page":
      return ["a page", "open it in a browser"];
    case "document":
      return ["a JSON document that Tidemark wrote", "docs/json/ describes it"];
    case "program":
      return ["a program", `run it: tidemark run ${word.includes("/") ? word : `./${word}`}`];
    case "Python":
      return ["a Python script", `run it: tidemark run ${word}`];
    case "zip":
      return ["a zip archive", `if it is a Python program: tidemark run ${word}`];
    case "empty":
      return ["empty", "the program that created it was stopped before writing"];
    case "cut off":
      return ["compressed data that is cut off or damaged", "copy it again"];
    case "folder":
      return ["a folder", `a program with __main__.py: tidemark run ${word}`];
    case "special":
      return ["not a regular file", ""];
    default: {
      const foreign = describeForeign(path);
      return foreign === undefined
        ? [
            KIND_TEXTS[kind] ?? `a ${kind} file`,
            `if another profiler wrote it: tidemark import ${word}`,
          ]
        : [foreign.what, foreign.next];
    }
  }
}

const KIND_TEXTS: Readonly<Partial<Record<FileKind, string>>> = {
  text: "text",
  unknown: "of a kind that Tidemark does not know",
};
