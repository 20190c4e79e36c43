import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ERROR_IDS } from "../model/errors/errors.js";
import { buildProgram, COMMAND_NAMES } from "./command_line.js";

describe("every command", () => {
  it.each(COMMAND_NAMES)("%s has the options that all have", async (name) => {
    const program = await buildProgram(name);
    const command = program.commands.find((candidate) => candidate.name() === name);
    const flags = command?.options.map((option) => option.long);
    expect(flags).toEqual(expect.arrayContaining(["--json", "--quiet", "--debug"]));
    // Each list: these have no rows to choose from, and threads have no size.
    if (!["report", "export", "import", "detach", "doctor", "completion"].includes(name)) {
      const sized = name === "stacks" ? [] : ["--min"];
      expect(flags, "see the exceptions in this test for a command without rows").toEqual(
        expect.arrayContaining(["--top", "--filter", ...sized]),
      );
    }
    expect(command?.description()).not.toBe("");
  });

  it("is loaded only when it is called for", async () => {
    const program = await buildProgram("");
    expect(program.commands.map((command) => command.name())).toEqual(
      expect.arrayContaining([...COMMAND_NAMES]),
    );
    expect(program.commands.every((command) => command.options.length === 0)).toBe(true);
  });
});

it("docs/errors.md has a line for every error", () => {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| (TM-E\d{3}) \| \S/gm)].map((match) => match[1]);
  expect(listed).toEqual([...ERROR_IDS]);
});
