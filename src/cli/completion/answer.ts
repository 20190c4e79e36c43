/** The hidden command `__complete SHELL WORDS...` (of bash: `bash REPLACED WORDS...`), by which the scripts of scripts.ts ask. */
import { candidatesFor, type LoadCommand } from "./candidates.js";

/**
 * Writes one candidate a line, its text behind a tab, and `:files SUFFIX` where files may follow. Never throws, and says
 * nothing of what goes wrong: a person is typing.
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

/** What bash takes for words of their own (COMP_WORDBREAKS), though they stand within a word. */
const BREAKS = /^[=@:]+$/;

/** Joins `--format`, `=`, `csv` to one word again. */
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

/** Characters of the last word that bash leaves as they are: those before what it replaces. */
function lengthKept(word: string, replaced: string): number {
  return word.endsWith(replaced) ? word.length - replaced.length : 0;
}
