/** The command line of a Python interpreter, read as CPython reads it (Python/getopt.c). */
import { baseName } from "./frame_text.js";

/** What an interpreter runs: a script, a module, or code that no file contains. */
export type PythonSource =
  | { readonly kind: "script" | "module"; readonly name: string }
  | { readonly kind: "code" | "nothing" };

/** Letters that take a value: the rest of their word or, if they end it, the next word. */
const WITH_VALUE = "cmWX";
const LONG_WITH_VALUE = "--check-hash-based-pycs";

/** null for another program than Python. */
export function pythonSource(command: readonly string[]): PythonSource | null {
  if (!/^python[\d.]*t?$/.test(baseName(command[0] ?? ""))) {
    return null;
  }
  for (let at = 1; at < command.length; at++) {
    const word = command[at] ?? "";
    if (word === "-") {
      return { kind: "nothing" };
    }
    if (word === "--" || !word.startsWith("-")) {
      return namedSource("script", word === "--" ? command[at + 1] : word);
    }
    const { letter, value } = valueIn(word);
    if (letter === "c") {
      return { kind: "code" };
    }
    if (letter === "m") {
      return namedSource("module", value === "" ? command[at + 1] : value);
    }
    at += (letter !== "" && value === "") || word === LONG_WITH_VALUE ? 1 : 0;
  }
  return { kind: "nothing" };
}

/** The first letter of a word of options that takes a value, and the rest of the word: "c" and "" of "-uc". */
function valueIn(word: string): { letter: string; value: string } {
  const at = word.startsWith("--") ? -1 : [...word].findIndex((each) => WITH_VALUE.includes(each));
  return at < 0 ? { letter: "", value: "" } : { letter: word[at] ?? "", value: word.slice(at + 1) };
}

function namedSource(kind: "script" | "module", name: string | undefined): PythonSource {
  return name === undefined || (kind === "script" && name === "-")
    ? { kind: "nothing" }
    : { kind, name };
}
