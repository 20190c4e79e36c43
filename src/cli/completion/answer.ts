/**
 * The hidden command `__complete SHELL WORDS...` (for bash: `bash REPLACED WORDS...`), which the scripts in
 * scripts.ts call.
 */
import { candidatesFor, type LoadCommand } from "./candidates.js";

/**
 * Writes one candidate per line, followed by a tab and its description, and `:files SUFFIX` if a file name may
 * follow. Never throws and reports no errors, because a person is typing.
 */
export async function answerShell(words: readonly string[], load: LoadCommand): Promise<void> {
  const [shell = "", ...typed] = words;
  try {
    const whole = shell === "bash" ? joinBroken(typed.slice(1)) : typed;
    const kept = shell === "bash" ? lengthKept(whole.at(-1) ?? "", typed[0] ?? "") : 0;
    const { values, files } = await candidatesFor(whole, load);
    const lines = values.map(({ value, text }) => `${value.slice(kept)}\t${text}`);
    if (files !== null) {
      lines.push(`:files\t${files}`);
    }
    process.stdout.write(lines.map((line) => `${line}\n`).join(""));
  } catch {
    process.exitCode = 1;
  }
}

/** Characters at which bash splits words (COMP_WORDBREAKS). */
const BREAKS = /^[=@:]+$/;

/** Joins `--format`, `=`, `csv` into one word again. */
function joinBroken(words: readonly string[]): string[] {
  const joined: string[] = [];
  let open = false;
  for (const [at, word] of words.entries()) {
    const isBreak = BREAKS.test(word) && at > 0;
    if (isBreak || open) {
      joined.push(`${joined.pop() ?? ""}${word}`);
    } else {
      joined.push(word);
    }
    open = isBreak;
  }
  return joined;
}

/** Number of characters at the start of the last word that bash does not replace. */
function lengthKept(word: string, replaced: string): number {
  return word.endsWith(replaced) ? word.length - replaced.length : 0;
}
