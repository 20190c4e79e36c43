/** Programs in every awkward state and place: attached to, or refused with the reason, and never harmed. */

import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { remoteExec } from "../../src/cpython/entry/remote_exec.js";
import { pausedByOther } from "../../src/linux/hold/other_tracer.fixture.js";
import { present } from "../../src/model/base/present.js";
import { TidemarkError } from "../../src/model/errors/errors.js";
import { detachAgent } from "../../src/record/index.js";
import { anyInterpreter, environment, isRoot } from "../environment.js";
import { validate } from "../recorded_app.js";
import {
  attach,
  belongings,
  commandOf,
  killAll,
  leftFiles,
  libraryPath,
  removeScratch,
  scratch,
  start,
  startCommand,
} from "./targets.js";

afterEach(killAll);
afterAll(removeScratch);

const python = anyInterpreter();
const { tools } = environment;
const exec = (pid: number, work = "return 'ran'", waitMs = 30_000) =>
  remoteExec(pid, work, { waitMs });

const SERVICE = `
import time
kept = []
print("up")
while True:
    kept.append(bytearray(50_000))
    if len(kept) > 300: del kept[:]
    time.sleep(0.001)`;

interface Started {
  readonly startedMs: number;
}

describe("states", () => {
  test("an answer is complete once the program has closed it", async () => {
    const target = await start(
      python,
      `import os, time
close = os.close
def slowly(descriptor):
    time.sleep(0.5)
    close(descriptor)
os.close = slowly
print("up")
while True: time.sleep(0.01)`,
    );
    const before = belongings(target.pid);
    expect((await exec(target.pid)).text).toBe("ran");
    expect(belongings(target.pid).descriptors).toBe(before.descriptors);
  });

  test("200 threads", async () => {
    const target = await start(
      python,
      `import threading, time
def work():
    while True:
        time.sleep(0.005)
        bytearray(1000)
for _ in range(200): threading.Thread(target=work, daemon=True).start()
print("up")
time.sleep(600)`,
    );
    expect((await attach(target.pid)).open().complete).toBe(true);
    expect((await exec(target.pid, "import threading\nreturn threading.active_count()")).text).toBe(
      "201",
    );
  });

  test("stopped: refused in time with the reason, nothing left behind, and it stays stopped", async () => {
    const target = await start(python, SERVICE);
    process.kill(target.pid, "SIGSTOP");
    await expect(exec(target.pid, "return 1", 1_500)).rejects.toThrow(/TM-E035 .*stopped/);
    expect(leftFiles(target.pid)).toEqual([]);
    // After a release, the kernel stops the process again a moment later.
    const state = () => readFileSync(`/proc/${target.pid}/stat`, "utf8");
    await expect.poll(state).toMatch(/\) [Tt] /);
    await sleep(300);
    expect(state()).toMatch(/\) [Tt] /);
    process.kill(target.pid, "SIGCONT");
    expect((await exec(target.pid)).text).toBe("ran");
  });

  test("a main thread in C code that holds the lock: refused, undone, and the program continues", async () => {
    const target = await start(
      python,
      // The shell prints "up": by then the main thread is in C code. It waits for the end of its input.
      `import ctypes
ctypes.PyDLL(None).system(b"echo up; read line")
ran = sum(range(10))
print("well", ran)`,
    );
    await expect(exec(target.pid, "return 1", 1_000)).rejects.toThrow(/TM-E035 .*lock/);
    target.child.stdin?.end();
    expect(await target.ended()).toEqual({ code: 0, signal: null });
    expect(target.output()).toBe("up\nwell 45\n");
  });

  test("an uninterruptible wait (D): refused in time by its name, or entered once it is over", async () => {
    const fifo = join(scratch, "fifo");
    expect(spawnSync("mkfifo", [fifo]).status).toBe(0);
    // The parent in posix_spawn is in that wait until its child has called exec; here, has opened its input.
    const target = await start(
      python,
      `import os, select, sys
print("up")
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, ${JSON.stringify(fifo)}, os.O_RDONLY, 0)])
while not select.select([sys.stdin], [], [], 0.05)[0]: pass
print("well")`,
    );
    const state = () => readFileSync(`/proc/${target.pid}/stat`, "utf8");
    await expect.poll(state).toMatch(/\) D /);
    await expect(exec(target.pid, "return 1", 1_000)).rejects.toThrow(
      /TM-E035 .*main thread hangs in/,
    );
    expect(state()).toMatch(/\) D /);
    expect(leftFiles(target.pid)).toEqual([]);
    let lastMessage = "";
    const answer = remoteExec(target.pid, "return 'ran'", {
      waitMs: 60_000,
      onWaiting(doing) {
        lastMessage = doing;
        writeFileSync(fifo, ""); // its child continues
      },
    });
    expect((await answer).text).toBe("ran");
    expect(lastMessage).toMatch(/main thread hangs in/);
    target.child.stdin?.end();
    expect(await target.ended(), target.output()).toEqual({ code: 0, signal: null });
  });

  test("a zombie, and a process that ends while it is read", async () => {
    const zombie = await start(
      python,
      `import os, time
child = os.fork()
if child == 0: os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
print("up", child)
time.sleep(600)`,
    );
    // Unbuffered output arrives word by word.
    await zombie.said(/up \d+\n/);
    const dead = Number(/up (\d+)/.exec(zombie.output())?.[1]);
    await expect(exec(dead)).rejects.toThrow(/ended|gone|no process/);

    // Here, too, "up" is printed when it is in C code and holds the lock.
    const held = `import ctypes\nctypes.PyDLL(None).system(b"echo up; exec sleep 600")`;
    const ending = await start(python, held);
    const answer = remoteExec(ending.pid, "return 'ran'", {
      waitMs: 60_000,
      onWaiting: () => ending.child.kill("SIGKILL"),
    });
    await expect(answer).rejects.toThrow(/TM-E020/);
  });

  test("a process that calls exec repeatedly is entered or refused, never damaged", async () => {
    const target = await start(
      python,
      `import os, sys, time\nprint("up")\ntime.sleep(0.05)\nos.execv(sys.executable, [sys.executable] + sys.orig_argv[1:])`,
    );
    for (let round = 0; round < 10; round++) {
      await exec(target.pid, "return 'ran'", 500).catch((error: unknown) =>
        expect(error).toBeInstanceOf(TidemarkError),
      );
    }
    expect(target.child.exitCode ?? target.child.signalCode).toBeNull();
  });

  test("traced by another tool: refused with the tool's name", async () => {
    const target = await start(python, SERVICE);
    const release = await pausedByOther(target.pid);
    await expect(exec(target.pid)).rejects.toThrow(/TM-E032 .*tidemark-guard/);
    await release();
    expect((await exec(target.pid)).text).toBe("ran");
  });

  test("tracemalloc, faulthandler, a profiler and subinterpreters", async () => {
    const target = await start(
      python,
      `import faulthandler, select, sys, tracemalloc
tracemalloc.start()
faulthandler.enable()
sys.setprofile(lambda *_: None)
try:
    import _interpreters
except ImportError:
    try:
        import _xxsubinterpreters as _interpreters
    except ImportError:
        _interpreters = None
if _interpreters: _interpreters.create()
kept = []
print("up")
while not select.select([sys.stdin], [], [], 0.001)[0]:
    kept.append(bytearray(20_000))
    if len(kept) > 100: del kept[:]
assert tracemalloc.get_traced_memory()[0] > 0
print("well")`,
    );
    expect((await attach(target.pid)).open().complete).toBe(true);
    expect((await attach(target.pid)).open().complete).toBe(true);
    target.child.stdin?.end();
    expect(await target.ended(), target.output()).toEqual({ code: 0, signal: null });
  });
});

describe("recorders", () => {
  test("a second recorder is refused; a killed one is cleaned up", async () => {
    const target = await start(python, SERVICE);
    const recordingPath = join(scratch, "killed.tidemark");
    const main = join(libraryPath, "../../program/main.js");
    const recorder = await startCommand([
      "sh",
      "-c",
      `echo up; exec "${process.execPath}" "${main}" attach ${target.pid} --for 10min -o "${recordingPath}"`,
    ]);
    await recorder.said("recording process");
    await expect(attach(target.pid)).rejects.toThrow(
      /TM-E037 .*already being recorded by process \d+/,
    );
    await expect(detachAgent(target.pid, { waitMs: 1_000 })).rejects.toThrow(/TM-E037/);
    recorder.child.kill("SIGKILL");
    await recorder.ended();
    expect(await detachAgent(target.pid, { waitMs: 30_000 })).toMatchObject({ recorded: true });
    expect(await detachAgent(target.pid, { waitMs: 30_000 })).toMatchObject({ recorded: false });
    expect((await attach(target.pid)).open().processes[0]?.profiled).toBe(true);
  });

  test("an interrupt ends the recording, prints the summary, and leaves the process clean", async () => {
    const target = await start(python, SERVICE);
    const main = join(libraryPath, "../../program/main.js");
    const recorder = await startCommand([
      "sh",
      "-c",
      `echo up; exec "${process.execPath}" "${main}" attach ${target.pid} -o "${join(scratch, "interrupted.tidemark")}"`,
    ]);
    await recorder.said("recording process");
    recorder.child.kill("SIGINT");
    expect(await recorder.ended()).toEqual({ code: 0, signal: null });
    expect(recorder.output()).toMatch(/goes on without Tidemark/);
    expect(await detachAgent(target.pid, { waitMs: 30_000 })).toMatchObject({ recorded: false });
    expect(leftFiles(target.pid)).toEqual([]);
  });

  test("an interrupt at any moment of attaching: the process is recorded and left, or not entered at all", async () => {
    const target = await start(python, SERVICE);
    const outcomes = [];
    // From before anything is read until after the agent has been armed.
    for (let delayMs = 0; delayMs <= 90; delayMs += 2) {
      const interrupt = new AbortController();
      setTimeout(() => interrupt.abort(), delayMs);
      const outcome = await attach(target.pid, {
        until: interrupt.signal,
        enough: () => false,
      }).then(
        () => "recorded",
        (error: { id?: string }) => error.id,
      );
      outcomes.push(outcome);
      // In every case no agent is left armed: an armed one would refuse the next recorder.
    }
    expect(outcomes.filter((outcome) => outcome !== "recorded" && outcome !== "TM-E041")).toEqual(
      [],
    );
    expect((await attach(target.pid)).open().processes[0]?.profiled).toBe(true);
    expect(leftFiles(target.pid)).toEqual([]);
  });

  test("a process that ends while it is recorded", async () => {
    const target = await start(python, SERVICE);
    const recording = attach(target.pid, {
      enough: () => false,
      onRecording: () => setTimeout(() => target.child.kill("SIGTERM"), 500),
    });
    expect(await recording).toMatchObject({ ended: true });
    expect((await recording).open().complete).toBe(true);
  });

  test("nothing was attached: reported", async () => {
    const target = await start(python, SERVICE);
    await expect(detachAgent(target.pid, { waitMs: 30_000 })).rejects.toThrow(/TM-E039/);
  });
});

describe("places", () => {
  test.runIf(isRoot && tools.unshare)("mount and pid namespaces of its own", async () => {
    const target = await startCommand([
      present(tools.unshare),
      "-m",
      "-p",
      "--fork",
      "--mount-proc",
      "sh",
      "-c",
      `mount -t tmpfs -o noexec none /tmp && exec "$0" -u -c "$1"`,
      ...commandOf(python),
      SERVICE,
    ]);
    const children = readFileSync(`/proc/${target.pid}/task/${target.pid}/children`, "utf8");
    const inside = Number(children.trim().split(" ")[0]);
    const recording = (await attach(inside)).open();
    expect(recording.processes[0]).toMatchObject({ profiled: true, pid: inside });
    expect(leftFiles(inside)).toEqual([]);
  });

  test.runIf(isRoot && tools.setpriv)(
    "another user's process: root may attach, others are refused",
    async () => {
      const target = await startCommand([
        present(tools.setpriv),
        ...["--reuid", "65534", "--regid", "65534", "--clear-groups"],
        ...["/usr/bin/env", "-i", "python3", "-uEc", SERVICE],
      ]).catch(() => null);
      if (target !== null) {
        expect((await attach(target.pid)).open().processes[0]?.profiled).toBe(true);
      }
      const roots = await start(python, SERVICE);
      const module = join(libraryPath, "../../record/index.js");
      const asked = spawnSync(
        process.execPath,
        [
          "--input-type=module",
          "-e",
          `const { attachAndRecord } = await import(${JSON.stringify(module)});
process.setgid(65534); process.setuid(65534);
await attachAndRecord({ pid: ${roots.pid}, recordingPath: "/tmp/none.tidemark", libraryPath: ${JSON.stringify(libraryPath)}, waitMs: 1000, enough: () => true }).catch((error) => console.log(error.message));`,
        ],
        { encoding: "utf8" },
      );
      expect(asked.stdout, asked.stderr).toMatch(/TM-E021 .*belongs to root/);
    },
  );

  test("no Python at all", async () => {
    const target = await startCommand(["sh", "-c", "echo up; sleep 600 & wait"]);
    await expect(exec(target.pid)).rejects.toThrow(/TM-E022 no Python interpreter/);
  });
});

describe("the command line", () => {
  test("documents match their schemas; bad arguments give one line", async () => {
    const target = await start(python, SERVICE);
    const main = join(libraryPath, "../../program/main.js");
    const tidemark = (...words: string[]) =>
      spawnSync(process.execPath, [main, ...words], { encoding: "utf8", cwd: scratch });
    const pid = String(target.pid);
    const attached = tidemark("attach", pid, "--for", "1s", "--json", "-o", "cli.tidemark");
    const summary = validate(attached.stdout, "summary");
    expect(summary.target).toMatchObject({ pid: target.pid });
    expect(summary.verdict).toMatchObject({ kind: "insufficient-evidence", confidence: 0 });
    expect(attached.stderr).toMatch(/it was paused for [\d.]+ ms/);
    const { target: seen, window } = summary as { target: Started; window: { startMs: number } };
    expect(seen.startedMs).toBeLessThan(window.startMs); // the start of the program, not of the recording
    const detached = validate(tidemark("detach", pid, "--json").stdout, "detach");
    expect(detached).toMatchObject({ pid: target.pid, recorded: false, inert: true });
    const mistakes: [string[], number, RegExp][] = [
      [["attach", "abc"], 2, /process id/],
      [["attach", "0"], 2, /process id/],
      [["attach", pid, "--for", "soon"], 2, /a duration such as/],
      [["attach", pid, "-o", "cli.tidemark"], 2, /TM-E015/],
      [["attach", "4194303", "-o", "none.tidemark"], 4, /TM-E020/],
      [["detach", "4194303"], 4, /TM-E020/],
    ];
    for (const [words, code, text] of mistakes) {
      const { status, stderr, stdout } = tidemark(...words);
      expect([status, stdout], words.join(" ")).toEqual([code, ""]);
      expect(stderr.trimEnd().split("\n")).toHaveLength(1);
      expect(stderr).toMatch(text);
    }
  });
});
