/** Reads a busy program: threads start and end, and objects are replaced, while it is read. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectSpeaksClearly } from "../behaviour.js";
import { anyInterpreter } from "../environment.js";
import { execute, removeScratch, tidemark } from "../run.js";

const program = `import threading, time
def work():
    made = [{"number": number, "text": str(number)} for number in range(300)]
    class Local: pass
    Local().made = made
def spawn():
    while True:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
kept = [{"number": number} for number in range(20_000)]
for _ in range(3): threading.Thread(target=spawn, daemon=True).start()
print("ready", flush=True)
time.sleep(600)
`;
const busy = spawn(anyInterpreter().path, ["-c", program], {
  stdio: ["ignore", "pipe", "inherit"],
});

beforeAll(async () => {
  await once(busy.stdout, "data");
});
afterAll(() => {
  busy.kill("SIGKILL");
  removeScratch();
});

test("'heap --retained' finds the kept objects each time", async () => {
  for (let time = 0; time < 15; time++) {
    const { status, stdout, stderr } = await execute([
      tidemark,
      "heap",
      String(busy.pid),
      "--retained",
      "--json",
    ]);
    expect(status, stderr).toBe(0);
    expect(JSON.parse(stdout).holders[0].path).toEqual(["module __main__", "kept"]);
  }
});

test.each(["heap", "heap --exact", "stacks", "ledger", "gpu"])(
  "'%s' answers or reports the reason in one line",
  async (command) => {
    for (let time = 0; time < 4; time++) {
      const { status, stderr } = await execute([tidemark, ...command.split(" "), String(busy.pid)]);
      expect([0, 4], stderr).toContain(status);
      expect(stderr).not.toMatch(/damaged/);
      expectSpeaksClearly(stderr);
    }
  },
);
