/** Suggestions for a mistyped option or file. */
import { readdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { Command } from "commander";
import { nearNames } from "../../model/base/near_miss.js";
import { shellWord } from "../../model/base/shell_word.js";

/** Options of `tidemark` itself. */
const PROGRAM_OPTIONS = ["--version", "--help"];

/** What other tools call an option, and what it is called here. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  "--duration": "--for",
  "--seconds": "--for",
  "--time": "--for",
  "--timeout": "--for",
  "--subprocesses": "--children",
  "--follow-fork": "--children",
  "--interval": "--period",
  "--rate": "--period",
};
/** Options of other tools for the process, which is an argument here. */
const PID_OPTIONS: ReadonlySet<string> = new Set(["--pid", "-p"]);

/**
 * An option of the command that is similar to `flag`; otherwise the command line of another command that has
 * exactly this option, preferably one that is named in the command line; undefined if there is neither.
 * `command` is "" or an option if no command was named.
 */
export function guessOption(
  flag: string,
  command: string,
  commands: readonly Command[],
  words: readonly string[] = [],
): string | undefined {
  const flagsOf = (each: Command) =>
    each.options.flatMap(({ long, short }) => [long, short].filter((name) => name !== undefined));
  const own = commands.find((each) => each.name() === command);
  const program = command.startsWith("-") || command === "" ? PROGRAM_OPTIONS : [];
  // Includes subcommands: `gpu oom --snapsot`.
  const [near] = nearNames(flag, [
    ...program,
    ...[own, ...(own?.commands ?? [])].flatMap((each) => (each ? flagsOf(each) : [])),
  ]);
  if (near !== undefined) {
    return near;
  }
  const named = OTHER_NAMES[flag];
  if (own !== undefined && named !== undefined && flagsOf(own).includes(named)) {
    return named;
  }
  const takesPid = own?.registeredArguments.some(({ description }) => /process/.test(description));
  if (own !== undefined && takesPid && PID_OPTIONS.has(flag)) {
    return `tidemark ${own.name()} ${/^\d+$/.exec(words[words.indexOf(flag) + 1] ?? "")?.[0] ?? "PID"}`;
  }
  const others = commands.filter((each) => each !== own && flagsOf(each).includes(flag));
  const other = others.find((each) => words.includes(each.name())) ?? others[0];
  return other === undefined ? undefined : `tidemark ${other.name()} ${flag}`;
}

/** "did you mean DIR/NAME?" for a missing file; a note for a broken link; "" if its folder has no file with a similar name. */
export function guessFile(path: string): string {
  let names: string[];
  try {
    names = readdirSync(dirname(path));
  } catch {
    return "";
  }
  if (names.includes(basename(path))) {
    return "it is a symbolic link to a file that does not exist";
  }
  const [near] = nearNames(basename(path), names);
  return near === undefined
    ? ""
    : `did you mean ${shellWord(path.includes("/") ? `${dirname(path)}/${near}` : near)}?`;
}
