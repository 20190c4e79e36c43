import { type Command, InvalidArgumentError, Option } from "commander";
import { formatBytes } from "../../model/base/numbers.js";
import { bytesIn, durationIn } from "../../model/base/quantities.js";
import { shellWord } from "../../model/base/shell_word.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import { oneLine } from "../../model/errors/errors.js";

/** Options of every command. */
export interface CommonOptions {
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly debug?: boolean;
}

/** Options of every command that prints a list. */
export interface ListOptions {
  readonly top?: number;
  readonly min?: Bytes;
  readonly filter?: string;
}

/** Adds the options of {@link CommonOptions}; `run` writes its JSON to a file and adds its own --json. */
export function withCommonOptions(command: Command, json: "stdout" | "file"): Command {
  command.addOption(
    json === "stdout"
      ? new Option("--json", "print one JSON document instead of text")
      : new Option("--json <file>", "write the summary as JSON to this file").argParser(
          parseJsonFile,
        ),
  );
  return command
    .option(
      "--quiet",
      json === "stdout"
        ? "do not print notes, hints or progress"
        : "no summary and no verdict; print only what could not be recorded",
    )
    .option("--debug", "show the stack of an error of Tidemark");
}

/** The file of `--json` of a command whose stdout belongs to the program that it runs. */
export function parseJsonFile(file: string): string {
  if (file === "-") {
    throw new InvalidArgumentError("the name of a file, because stdout belongs to the program");
  }
  return file;
}

/** Adds `--force` to a command that writes files. */
export function withForceOption(command: Command): Command {
  return command.option("-f, --force", "overwrite a file that Tidemark did not write");
}

/** Adds the options of {@link ListOptions}. */
export function withListOptions(command: Command, rows: string, defaultTop: number): Command {
  return command
    .option(
      "--top <n>",
      `show at most this many ${rows} (${defaultTop === 0 ? "default: all" : `default ${defaultTop}; 0: all`})`,
      parseCount,
    )
    .option("--min <bytes>", `only ${rows} of at least this size, such as 10MiB`, parseBytes)
    .option("--filter <text>", `only ${rows} that contain this text`);
}

const firstExamples = new WeakMap<Command, string>();

/** The first example of a command's help. */
export function exampleOf(command: Command): string | undefined {
  return firstExamples.get(command);
}

/** Adds examples after the help; each line is one command. */
export function withExamples(command: Command, ...examples: string[]): Command {
  firstExamples.set(command, examples[0] ?? "");
  return command.addHelpText(
    "after",
    `\nExamples:\n${examples.map((example) => `  $ ${example}`).join("\n")}`,
  );
}

/** Converts "4096", "64K", "10MiB" (powers of 1024), "1.5 GB" (powers of 1000) to bytes. */
export function parseBytes(text: string): Bytes {
  const bytes = bytesIn(text);
  if (bytes === null) {
    throw new InvalidArgumentError("a size such as 4096, 64K or 10MiB");
  }
  return bytes;
}

/** "500ms", "60s", "60", "10min", "1.5h": a duration above zero; plain numbers are seconds. */
export function parseDuration(text: string): Millis {
  const ms = durationIn(text);
  if (ms === null) {
    throw new InvalidArgumentError("a duration such as 30s, 5min or 2h");
  }
  return ms;
}

const LONGEST_INTERVAL: Millis = 86_400_000;

/** The time between two refreshes of a view. */
export function parseInterval(text: string): Millis {
  const ms = parseDuration(text);
  if (ms > LONGEST_INTERVAL) {
    throw new InvalidArgumentError("a duration such as 1s or 5min, at most 1 day");
  }
  return ms;
}

/** A whole number of 0 or more. */
export function parseCount(text: string): number {
  const count = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(count)) {
    throw new InvalidArgumentError("a whole number such as 20");
  }
  return count;
}

export interface SelectedRows<Row> {
  readonly rows: Row[];
  /** Number of matching rows that `--top` left out. */
  readonly leftOut: number;
  /** Set if there are rows but none matches `--filter` and `--min`: "nothing matches --filter zzz". */
  readonly unmatched?: string;
}

/**
 * The rows that match `--top`, `--min` and `--filter`, and how many `--top` left out. `--top` keeps the first
 * rows, so callers pass them ordered by the displayed value.
 */
export function selectRows<Row>(
  rows: readonly Row[],
  options: ListOptions,
  defaultTop: number,
  sizeOf: (row: Row) => Bytes,
  textOf: (row: Row) => string,
): SelectedRows<Row> {
  const wanted = options.filter?.toLowerCase();
  const matching = rows.filter(
    (row) =>
      (options.min === undefined || Math.abs(sizeOf(row)) >= options.min) &&
      (wanted === undefined || textOf(row).toLowerCase().includes(wanted)),
  );
  const top = options.top ?? defaultTop;
  const chosen = top === 0 ? matching : matching.slice(0, top);
  const unmatched = rows.length > 0 && matching.length === 0 ? unmatchedText(options) : undefined;
  return {
    rows: chosen,
    leftOut: matching.length - chosen.length,
    ...(unmatched === undefined ? {} : { unmatched }),
  };
}

/** Sorts `chosen` in the order of `all`. */
export function inOrderOf<Row>(all: readonly Row[], chosen: readonly Row[]): Row[] {
  const kept = new Set(chosen);
  return all.filter((row) => kept.has(row));
}

/** "nothing matches --filter zzz"; undefined if the options cannot have excluded every row. */
export function unmatchedText({ filter, min }: ListOptions): string | undefined {
  const conditions = [
    filter === undefined ? "" : `--filter ${shellWord(filter)}`,
    min === undefined ? "" : `--min ${formatBytes(min)}`,
  ].filter((condition) => condition !== "");
  return conditions.length === 0
    ? undefined
    : `nothing matches ${oneLine(conditions.join(" and "))}`;
}
