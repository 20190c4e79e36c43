/** Programs that end in every possible way: quickly, with an error, by a signal, with running threads. */

import { afterAll, describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import { compare, expectSame } from "../behaviour.js";
import { anyInterpreter, environment } from "../environment.js";
import { execute, readText, record, removeScratch, until } from "../run.js";
import { topPlaces } from "../truth.js";

const python = anyInterpreter().path;
afterAll(removeScratch);

describe("the exit status is the program's, and the recording is complete", () => {
  test.each([
    ["returns", "print('done')", 0],
    ["sys.exit(3)", "import sys; sys.exit(3)", 3],
    ["sys.exit with words", "import sys; sys.exit('no luck')", 1],
    ["an exception", "def fail():\n    raise KeyError('gone')\nfail()", 1],
    ["a syntax error", "def (:", 1],
    ["os._exit(42)", "import os; kept = bytes(32 << 20); os._exit(42)", 42],
    ["exit code 137, which looks like a signal", "import os; os._exit(137)", 137],
    ["exit code 255", "import os; os._exit(255)", 255],
  ])("%s", async (_name, program, status) => {
    const { recorded } = await compare([python, "-c", program]);
    expect(recorded.status).toBe(status);
    const recording = recorded.open();
    expect(recording.complete).toBe(true);
    expect(recording.end).toMatchObject({ exitCode: status, signal: null });
    expect((await recorded.summary()).limits).toEqual([]);
  });

  test("in a few milliseconds: true, and a program that does nothing", async () => {
    for (const command of [["true"], [python, "-S", "-E", "-c", ""]]) {
      const { recorded } = await compare(command);
      expect(recorded.status).toBe(0);
      const summary = await recorded.summary();
      expect(summary.processes).toHaveLength(1);
      expect(summary.processes[0]?.profiled).toBe(true);
      expect(summary.limits).toEqual([]);
      expect(summary.rss.peakBytes).toBeGreaterThan(0);
    }
  });
});

describe("ended by a signal: so is Tidemark, and the last moment is in the recording", () => {
  const keep =
    "def keep():\n    return bytes(40 << 20)\nkept = keep()\nimport os, signal, ctypes\n";
  test.each([
    ["SIGKILL", "os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"],
    ["SIGTERM", "os.kill(os.getpid(), signal.SIGTERM)", "SIGTERM"],
    ["SIGABRT", "os.abort()", "SIGABRT"],
    ["SIGSEGV", "ctypes.string_at(0)", "SIGSEGV"],
    ["SIGUSR2", "os.kill(os.getpid(), signal.SIGUSR2)", "SIGUSR2"],
    ["SIGHUP", "os.kill(os.getpid(), signal.SIGHUP)", "SIGHUP"],
  ])("%s", async (_name, end, signal) => {
    const { recorded } = await compare([python, "-c", keep + end]);
    expect(recorded.signal).toBe(signal);
    const recording = recorded.open();
    expect(recording.end?.exitCode).toBeNull();
    expect(topPlaces(recording.profileAt("end"), "live")[0]).toBe("keep <string>:2");
    expect(
      Math.abs(((await recorded.summary()).sites[0]?.liveBytes ?? 0) / ((40 << 20) + 33) - 1),
    ).toBeLessThan(0.1);
  });

  test("SIGINT to the whole group, as with Ctrl-C: the program handles it", async () => {
    const handled = `import os, signal, sys
def stop(number, frame):
    print("stopped"); sys.stdout.flush(); os._exit(9)
signal.signal(signal.SIGINT, stop)
print("ready", flush=True)
signal.pause()`;
    const interrupt = async (child: { pid?: number }, files: { stdout: string }) => {
      await until(() => readText(files.stdout).includes("ready"));
      process.kill(-present(child.pid), "SIGINT");
    };
    const plain = await execute([python, "-c", handled], { started: interrupt });
    const recorded = await record([python, "-c", handled], { started: interrupt });
    expectSame(plain, recorded);
    expect(recorded).toMatchObject({ status: 9, stdout: "ready\nstopped\n" });
    expect(recorded.open().complete).toBe(true);
  });

  test("unhandled KeyboardInterrupt", async () => {
    const waiting = "import os, time\nprint('ready', os.getpid(), flush=True)\ntime.sleep(600)";
    const ready = /^ready (\d+)$/m;
    const interrupt = async (child: { pid?: number }, files: { stdout: string }) => {
      await until(() => ready.test(readText(files.stdout)));
      // It sleeps a moment after it has printed the line, and its traceback names the line that it reached.
      const pid = ready.exec(readText(files.stdout))?.[1];
      await until(() => / S /.test(readText(`/proc/${pid}/stat`)));
      process.kill(-present(child.pid), "SIGINT");
    };
    const plain = await execute([python, "-c", waiting], { started: interrupt });
    const recorded = await record([python, "-c", waiting], { started: interrupt });
    expectSame(plain, recorded, (text) => text.replace(ready, "ready"));
    expect(recorded.signal).toBe("SIGINT");
  });

  test.each(["SIGTERM", "SIGHUP", "SIGUSR1"] as const)(
    "%s to Tidemark alone reaches the program",
    async (name) => {
      const waiting = `import os, signal, sys
def stop(number, frame):
    print(signal.Signals(number).name, flush=True); os._exit(4)
signal.signal(signal.${name}, stop)
print("ready", flush=True)
signal.pause()`;
      const recorded = await record([python, "-c", waiting], {
        started: async (child, files) => {
          await until(() => readText(files.stdout).includes("ready"));
          process.kill(present(child.pid), name);
        },
      });
      expect(recorded).toMatchObject({ status: 4, stdout: `ready\n${name}\n` });
    },
  );
});

describe.each(
  environment.interpreters
    .filter(({ chroot }) => !chroot)
    .map(({ version, path }) => [version, path]),
)("Python %s", (_version, path) => {
  test("ends while daemon threads allocate in native code", async () => {
    // ctypes releases the GIL: these threads are in malloc while their interpreter is finalized.
    const program = `
import ctypes, threading, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def work(malloc=libc.malloc, free=libc.free):
    while True:
        free(malloc(200_000))
for _ in range(6):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("main is done")
`;
    for (let round = 0; round < 3; round++) {
      const recorded = await record([path, "-c", program]);
      expect(recorded, recorded.stderr).toMatchObject({
        status: 0,
        signal: null,
        stdout: "main is done\n",
      });
      expect(recorded.open().complete).toBe(true);
    }
  });
});
