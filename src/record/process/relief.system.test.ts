/** Memory that real programs release when code is run in them from outside. */
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { anyInterpreter, environment } from "../../../test/environment.js";
import { startPython, type Waiting } from "../../../test/python_program.js";
import { present } from "../../model/base/present.js";
import { collectGarbage, emptyDeviceCache, runPressureHooks, trimAllocator } from "./relief.js";

const WITH_PACKAGE = {
  PYTHONPATH: fileURLToPath(new URL("../../../python", import.meta.url)),
};
/** Says that it is ready, and goes on in Python. */
const WAIT = `import time
out.write(b"{}\\n")
while True: time.sleep(0.05)
`;
const PATIENCE = { waitMs: 20_000 };
let program: Waiting | null = null;
afterEach(async () => {
  await program?.stop();
  program = null;
});

/** `body` runs before the program waits. */
async function start(body: string): Promise<number> {
  program = await startPython(anyInterpreter(), `${body}\n${WAIT}`, WITH_PACKAGE);
  return program.pid;
}

test("garbage is collected, and the allocator trimmed", async () => {
  const pid = await start(
    "import gc; gc.disable()\nfor _ in range(1000):\n    a = []; a.append(a)",
  );
  expect(await collectGarbage(pid, PATIENCE)).toBeGreaterThan(900);
  await trimAllocator(pid, PATIENCE);
});

describe("tidemark.on_pressure", () => {
  test("every function is called, and one that raises is named", async () => {
    const pid = await start(`import tidemark
kept = {}
@tidemark.on_pressure
def broken(): raise ValueError("no")
@tidemark.on_pressure
def forget(): kept["called"] = True
tidemark.on_pressure(forget)`);
    expect(await runPressureHooks(pid, PATIENCE)).toEqual({
      outcome: "called 2 functions of tidemark.on_pressure; raised: broken: ValueError: no",
    });
  });

  test("a function may need a lock that the main thread holds", async () => {
    const pid = await start(`import threading, tidemark
lock = threading.Lock()
@tidemark.on_pressure
def forget():
    with lock: pass
lock.acquire()
threading.Timer(3, lock.release).start()`);
    expect(await runPressureHooks(pid, PATIENCE)).toEqual({
      outcome: "called 1 function of tidemark.on_pressure",
    });
  });

  test("a program without functions is refused, and so is an answer that makes no sense", async () => {
    const none = { refused: "the program has registered nothing with tidemark.on_pressure" };
    expect(await runPressureHooks(await start("import tidemark"), PATIENCE)).toEqual(none);
    await program?.stop();
    const lies = `import sys, types
fake = types.ModuleType("tidemark._pressure")
fake._hooks, fake._begin, fake._state = [1], lambda: None, lambda: "{" * 100_000
sys.modules["tidemark._pressure"] = fake`;
    expect(await runPressureHooks(await start(lies), PATIENCE)).toEqual(none);
  });
});

test.skipIf(environment.torchPython === null)(
  "torch's cache is left alone where torch has used no device",
  async () => {
    program = await startPython(
      { path: present(environment.torchPython) },
      `import torch\nkept = torch.ones(10)\n${WAIT}`,
    );
    expect(await emptyDeviceCache(program.pid, PATIENCE)).toEqual({
      refused: "torch has not used a device in this program",
    });
  },
);
