/** An interpreter that shuts down is recognized, for each interpreter on this machine. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { environment } from "../../test/environment.js";
import { startPython, type Waiting } from "../../test/python_program.js";
import { locatePython } from "../cpython/index.js";
import { openProcessMemory } from "../linux/index.js";
import { stillRunning } from "./still_running.js";

/** Its module's dict is being emptied for as long as `__del__` takes. */
const PROGRAM = `
import signal, time
class Last:
    def __del__(self, sleep=time.sleep, make=os.mkdir, path=os.environ["ENDING"]):
        make(path)
        sleep(60)
last = Last()
signal.signal(signal.SIGUSR1, lambda *_: sys.exit())
say({})
`;
const folder = mkdtempSync(join(tmpdir(), "tidemark-ending-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const interpreters = environment.interpreters.filter(
  ({ freeThreaded, chroot }) => !freeThreaded && chroot === undefined,
);

describe.each(interpreters.map((one, n) => [`Python ${one.version} ${one.path}`, one, n] as const))(
  "%s",
  (_name, interpreter, n) => {
    test("it is running until it destroys its modules and ends", async () => {
      const ending = join(folder, String(n));
      const waiting: Waiting = await startPython(interpreter, PROGRAM, { ENDING: ending });
      const memory = openProcessMemory(waiting.pid);
      try {
        const runs = stillRunning(locatePython(memory));
        expect(runs()).toBe(true);
        process.kill(waiting.pid, "SIGUSR1");
        await vi.waitFor(() => expect(existsSync(ending)).toBe(true), { timeout: 100_000 });
        expect(runs()).toBe(false);
        await waiting.stop();
        expect(runs()).toBe(false);
      } finally {
        memory.close();
        await waiting.stop();
      }
    });
  },
);
