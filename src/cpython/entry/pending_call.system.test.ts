/** Two commands that enter one process at the same time. */
import { expect, test } from "vitest";
import { environment } from "../../../test/environment.js";
import { startPython } from "../../../test/python_program.js";
import { openProcessMemory, readStat } from "../../linux/index.js";
import { checkStanding, findEntryPoint } from "./entry_point.js";
import { type Request, writeRequest } from "./pending_call.js";

const interpreters = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);

test.each(interpreters)(
  "Python $version: a second request waits until the first is done",
  async (interpreter) => {
    const program = await startPython(interpreter, "say(1)");
    await expect.poll(() => readStat(program.pid)?.state).toBe("S"); // it waits for its input, and executes nothing
    const memory = openProcessMemory(program.pid);
    const point = findEntryPoint(memory, program.pid);
    const write = () => writeRequest(point, checkStanding(point), "pass", "/none");
    const first = write();
    expect(first).toMatchObject({ undo: expect.any(Function) });
    expect(write()).toMatch(
      /another command of Tidemark is entering it|pending call from another debugger/,
    );
    expect((first as Request).undo(checkStanding(point))).toBe(true);
    const third = write();
    expect((third as Request).undo(checkStanding(point))).toBe(true);
    memory.close();
    await program.stop();
  },
);
