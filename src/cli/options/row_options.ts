/** `--where` and `--by`: which rows of a recording count, and how they are grouped. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { oneLine } from "../../model/errors/errors.js";
import type { RowCondition } from "../../model/profile/row_filter.js";

export interface WhereOption {
  readonly where?: readonly RowCondition[];
}

export interface ByOption {
  readonly by?: string;
}

/** Adds `--where KEY=VALUE`, which may be given more than once. */
export function withWhereOption(command: Command): Command {
  return command.addOption(
    new Option(
      "--where <key=value>",
      "only what was allocated there: thread=NAME, process=PID or NAME, rank=N, domain=python or\n" +
        "native, label=VALUE, or a label key of the program's own, as in endpoint=/chat;\n" +
        "given more than once, all must hold",
    ).argParser(addCondition),
  );
}

/** Adds `--by KEY`. `rows`: what is shown by group, "live bytes". */
export function withByOption(command: Command, rows: string, keys: string): Command {
  return command.addOption(
    new Option(
      "--by <key>",
      `show ${rows} by ${keys}, or a label key of the program's own`,
    ).argParser(onlyKey),
  );
}

function onlyKey(key: string, before?: string): string {
  if (before !== undefined) {
    throw new InvalidArgumentError(
      `one key: rows are grouped by ${oneLine(before)} or by ${oneLine(key)} (narrow the rows with --where)`,
    );
  }
  return key;
}

function addCondition(text: string, before: readonly RowCondition[] = []): RowCondition[] {
  const [, key, value] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) {
    throw new InvalidArgumentError("a condition KEY=VALUE such as thread=worker or endpoint=/chat");
  }
  return [...before, { key, value }];
}
