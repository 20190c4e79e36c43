import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { ERROR_IDS } from "../model/errors/errors.js";
import { buildProgram, COMMAND_NAMES, runCommandLine } from "./command_line.js";
import { COMMANDS } from "./command_list.js";

/** The options that select rows, by the kind of rows that a command prints. */
const SELECTING = {
  sized: ["--filter", "--min", "--top"],
  "without size": ["--filter", "--top"],
  "top only": ["--top"],
  none: [],
};

describe("every command", () => {
  it.each(COMMANDS)("$name has the common options", async ({ name, load }) => {
    const program = await buildProgram(name);
    const command = program.commands.find((candidate) => candidate.name() === name);
    const flags = command?.options.map((option) => option.long) ?? [];
    expect(flags).toEqual(expect.arrayContaining(["--json", "--quiet", "--debug"]));
    expect(command?.description()).not.toBe("");
    const { rows } = (await load()).about;
    const selecting = flags.filter((flag) => ["--top", "--filter", "--min"].includes(flag ?? ""));
    expect(selecting.sort(), `commands/${name}.ts says rows: "${rows}"`).toEqual(SELECTING[rows]);
  });

  it("is loaded only when it is needed", async () => {
    const program = await buildProgram("");
    expect(program.commands.map((command) => command.name())).toEqual(
      expect.arrayContaining([...COMMAND_NAMES]),
    );
    expect(program.commands.every((command) => command.options.length === 0)).toBe(true);
  });
});

it("a command that Node ends before it is done fails", async () => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const before = process.listeners("beforeExit");
  const running = runCommandLine(["no-such-command"]);
  const [atEnd, ...others] = process
    .listeners("beforeExit")
    .filter((listener) => !before.includes(listener));
  await atEnd?.(0);
  expect([process.exitCode, others]).toEqual([5, []]);
  expect(write.mock.calls.join()).toMatch(/TM-E001 .* the command ended before it was done/);
  await running;
  expect(process.listeners("beforeExit")).toEqual(before);
  process.exitCode = undefined;
  write.mockRestore();
});

it("docs/errors.md has a line for every error", () => {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| (TM-E\d{3}) \| \S/gm)].map((match) => match[1]);
  expect(listed).toEqual([...ERROR_IDS]);
});
