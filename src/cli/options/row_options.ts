/** `--where` and `--by`: which rows of a recording to include, and how to group them. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { badUsage, oneLine } from "../../model/errors/errors.js";
import type { RowCondition } from "../../model/profile/row_filter.js";

export interface WhereOption {
  readonly where?: readonly RowCondition[];
}

export interface ByOption {
  readonly by?: string;
}

/** Adds `--where KEY=VALUE`, which may be repeated. */
export function withWhereOption(command: Command): Command {
  return command.addOption(
    new Option(
      "--where <key=value>",
      "only allocations with: thread=NAME, process=PID or NAME, rank=N, domain=python or " +
        "native, label=VALUE, or a label key that the program sets, such as endpoint=/chat; " +
        "if repeated, all conditions apply",
    ).argParser(addCondition),
  );
}

/** Adds `--by KEY`, which may be given once. `rows` names what is grouped: "live bytes". */
export function withByOption(command: Command, rows: string, keys: string): Command {
  let given: string | undefined;
  command.on("option:by", (key: string) => {
    if (given !== undefined) {
      throw badUsage(
        `--by takes one key, not both ${oneLine(given)} and ${oneLine(key)}`,
        "group by one of them, and narrow the rows with --where",
      );
    }
    given = key;
  });
  return command.option(
    "--by <key>",
    `show ${rows} by ${keys}, or a label key that the program sets`,
  );
}

function addCondition(text: string, before: readonly RowCondition[] = []): RowCondition[] {
  const [, key, value] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) {
    throw new InvalidArgumentError("a condition KEY=VALUE such as thread=worker or endpoint=/chat");
  }
  return [...before, { key, value }];
}
