/** Every option of every command with invalid values and without a value, and every command without its
 * arguments: one line that shows a valid value. */
import { afterAll, expect, test } from "vitest";
import { everyCommand } from "../../src/cli/command_line.js";
import { expectSpeaksClearly } from "../behaviour.js";
import { commandHere } from "../command_here.js";
import { type Outcome, removeScratch, scratch } from "../run.js";

afterAll(removeScratch);

const BAD_VALUES = ["", "-1", "text", "NaN", "1e9", "5 minutes and a half", "9".repeat(30)];
/** A command that accepts a value that it should refuse must find no file of the repository. */
process.chdir(scratch());
const cli = (words: readonly string[]) => commandHere(...words);

function expectOneLine({ status, stdout, stderr }: Outcome, says: RegExp): void {
  expect(stderr).toMatch(says);
  expect(stderr).toMatch(/^tidemark: TM-E002 [^\n]+\n$/);
  expect([status, stdout], stderr).toEqual([2, ""]);
  expectSpeaksClearly(stderr.replaceAll("NaN", "it"));
}

const commands = (await everyCommand()).commands.flatMap((command) => [
  { command, words: [command.name()] },
  ...command.commands.map((below) => ({ command: below, words: [command.name(), below.name()] })),
]);
const options = commands.flatMap(({ command, words }) =>
  command.options
    .filter(({ required }) => required)
    .map((option) => ({ name: `${words.join(" ")} ${option.long}`, option, words })),
);
/** An option that several commands share is tested once. */
const distinct = options.filter(
  ({ option }, index) =>
    options.findIndex(
      (other) => other.option.flags === option.flags && other.option.parseArg === option.parseArg,
    ) === index,
);

function takesAnyText({ parseArg }: (typeof options)[number]["option"]): boolean {
  try {
    parseArg?.("any text", undefined);
    return true;
  } catch {
    return false;
  }
}

test.each(distinct)("$name", async ({ option, words }) => {
  const flag = option.long as string;
  expectOneLine(
    await cli([...words, flag]),
    new RegExp(`TM-E002 ${flag} takes .*, but none is given`),
  );
  if (takesAnyText(option)) {
    return;
  }
  for (const value of BAD_VALUES.filter((value) => !option.argChoices?.includes(value))) {
    expectOneLine(
      await cli([...words, flag, value]),
      new RegExp(`TM-E002 ${flag} takes (an?|one|verdicts) .*, not '${value}'`),
    );
  }
});

const needing = commands.filter(({ command }) =>
  command.registeredArguments.some(({ required }) => required),
);

test.each(needing.map((entry) => ({ ...entry, name: entry.words.join(" ") })))(
  "$name without required arguments, with too many, with an unknown option",
  async ({ words, name, command }) => {
    expectOneLine(
      await cli(words),
      new RegExp(`TM-E002 ${name} needs <.*>(, as in: tidemark ${name} |: one of )`),
    );
    expectOneLine(await cli([...words, "--nosuch"]), /unknown option '--nosuch'/);
    if (!command.registeredArguments.some(({ variadic }) => variadic)) {
      const surplus = command.registeredArguments[0]?.argChoices?.[0] ?? "1";
      expectOneLine(
        await cli([...words, surplus, "2", "3", "4"]),
        new RegExp(`TM-E002 ${name} takes \\d arguments?, and 4 are given`),
      );
    }
  },
);

test("an empty file name is invalid, and a pid excludes a name", async () => {
  expectOneLine(await cli(["summary", "a.tidemark", "--at", ""]), /--at takes a value/);
  expectOneLine(await cli(["attach", "1", "-o", ""]), /--output takes a value/);
  expectOneLine(await cli(["attach", "1", "--name", "x"]), /either a pid or --name/);
  expectOneLine(await cli(["attach"]), /needs <pid> or --name/);
  expectOneLine(await cli(["export", "a.tidemark"]), /export needs --format/);
  expectOneLine(await cli(["run", "--period", "0", "--", "true"]), /a size from 1 to 1TiB/);
  expectOneLine(await cli(["run", "--period", "99T", "--", "true"]), /a size from 1 to 1TiB/);
  expectOneLine(await cli(["top", "--interval", "30d"]), /at most 1 day/);
});
