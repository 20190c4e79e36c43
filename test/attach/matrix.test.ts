/**
 * Every CPython found: code is injected while it computes, ticks, sleeps, and waits for locks, sockets and
 * children; then it is recorded, detached, and recorded again. Its program's behaviour must not change.
 */
import { afterAll, afterEach, describe, expect, inject, test } from "vitest";
import { remoteExec } from "../../src/cpython/entry/remote_exec.js";
import { VERSION_FACTS } from "../../src/cpython/interpreter/version_facts.js";
import { environment, type Interpreter } from "../environment.js";
import {
  attach,
  belongings,
  commandOf,
  killAll,
  leftFiles,
  nameOf,
  removeScratch,
  start,
  startCommand,
} from "./targets.js";

afterEach(killAll);
afterAll(removeScratch);

/** Each prints "up", waits for so many seconds in its own way, checks that nothing disturbed it, then prints "well". */
const WAITS: Readonly<Record<string, string>> = {
  computing: `
import time
print("up")
end = time.monotonic() + SECONDS
total = 0
while time.monotonic() < end:
    total += sum(range(100)) == 4950
assert total > 0
print("well")`,
  ticking: `
import time
print("up")
for _ in range(int(20 * SECONDS)): time.sleep(0.05)
print("well")`,
  sleeping: `
import time
print("up")
begun = time.monotonic()
time.sleep(SECONDS)
assert time.monotonic() - begun >= SECONDS - 0.01
print("well")`,
  "waiting for a lock": `
import threading
lock = threading.Lock()
lock.acquire()
print("up")
assert not lock.acquire(timeout=SECONDS)
print("well")`,
  "in an event loop": `
import asyncio
async def main():
    print("up")
    await asyncio.sleep(SECONDS)
    return 7
assert asyncio.run(main()) == 7
print("well")`,
  "accepting, a queue and a child": `
import queue, socket, subprocess, threading, time
server = socket.create_server(("127.0.0.1", 0))
def connect():
    time.sleep(0.6 * SECONDS)
    socket.create_connection(server.getsockname()).sendall(b"hello")
threading.Thread(target=connect).start()
child = subprocess.Popen(["sleep", str(SECONDS)])
print("up")
peer, _ = server.accept()
assert peer.recv(5) == b"hello"
try:
    queue.Queue().get(timeout=0.3 * SECONDS)
except queue.Empty:
    pass
assert child.wait() == 0
print("well")`,
};

const SERVICE = `
import time
kept = []
def grow():
    kept.append(bytearray(50_000))
    kept.append([str(i) for i in range(100)])
print("up")
count = 0
while True:
    grow()
    count += 1
    if count % 500 == 0:
        del kept[:]
    time.sleep(0.001)`;

/** Enters one of {@link WAITS} twice. If it ends before the first time, as on a busy machine, the next one waits longer. */
async function entersWhile(interpreter: Interpreter, how: string, seconds = 3): Promise<void> {
  const source = `SECONDS = ${seconds}\n${WAITS[how]}`;
  const target = await start(interpreter, source);
  let answers = 0;
  while (answers < 2 && target.child.exitCode === null) {
    const work = "import sys\nreturn sys.version.split()[0]";
    try {
      const { text, version } = await remoteExec(target.pid, work, { waitMs: 30_000 });
      expect(text.startsWith(version), how).toBe(true);
      answers++;
    } catch (error) {
      if (!/TM-E0(20|30)|its interpreter .* has ended/.test(String(error)) || seconds > 40) {
        throw error;
      }
      break;
    }
  }
  const ended = await target.ended();
  expect(ended, `${how}: ${target.output()}`).toEqual({ code: 0, signal: null });
  expect(target.output(), how).toBe("up\nwell\n");
  if (answers === 0) {
    await entersWhile(interpreter, how, 4 * seconds);
  }
}

const gil = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);

describe.each(gil.map((interpreter) => [nameOf(interpreter), interpreter] as const))(
  "%s",
  (_name, interpreter) => {
    test(`runs injected code while ${Object.keys(WAITS).join(", ")}`, async () => {
      await Promise.all(Object.keys(WAITS).map((how) => entersWhile(interpreter, how)));
    });

    test("reports the raised exception, and changes no name of the program", async () => {
      const target = await start(
        interpreter,
        `import select, sys\nbefore = None\nprint("up")\nwhile not select.select([sys.stdin], [], [], 0.05)[0]: pass\nprint(sorted(n for n in globals() if "tidemark" in n or n in ("work", "answer", "os")))`,
      );
      const raising = remoteExec(target.pid, "raise LookupError('no such thing')", {
        waitMs: 30_000,
      });
      await expect(raising).rejects.toThrow(/TM-E036 .*LookupError: no such thing/);
      target.child.stdin?.end();
      await target.ended();
      expect(target.output()).toBe("up\n[]\n");
    });

    test("shows no warning of ours, and raises none", async () => {
      const source = 'import time\nprint("up")\nwhile True: time.sleep(0.01)';
      const options = ["-X", "dev", "-X", "warn_default_encoding", "-bb", "-W", "error"];
      const target = await startCommand([...commandOf(interpreter), ...options, "-uc", source]);
      await attach(target.pid);
      expect(target.child.exitCode).toBeNull();
      expect(target.output()).toBe("up\n");
    });

    test("is recorded, left, and recorded again", async () => {
      const target = await start(interpreter, SERVICE);
      const first = await attach(target.pid);
      const after = belongings(target.pid);
      expect(leftFiles(target.pid)).toEqual([]);
      const results = [first];
      while (results.length < inject("counts").attachRounds) {
        results.push(await attach(target.pid));
      }
      for (const result of results) {
        const recording = result.open();
        expect(recording.complete).toBe(true);
        expect(recording.processes[0]).toMatchObject({
          profiled: true,
          python: interpreter.version,
        });
        const { sites, stacks } = recording.profileAt("end");
        expect(sites.stack.length + stacks.parent.length).toBeGreaterThan(0);
      }
      const now = belongings(target.pid);
      expect(now.descriptors).toBe(after.descriptors);
      expect(now.mappings).toBeLessThanOrEqual(after.mappings + 4); // the heap's own mappings come and go
      expect(target.child.exitCode).toBeNull();
      expect(target.output()).toBe("up\n");
    });
  },
);

// Lists the versions that were not available.
for (const { minor } of VERSION_FACTS) {
  for (const sharedLibrary of [true, false]) {
    const found = gil.some(
      (one) => one.version.startsWith(`3.${minor}.`) && one.sharedLibrary === sharedLibrary,
    );
    test.skipIf(!found)(
      `3.${minor} ${sharedLibrary ? "shared" : "static"}: ${found ? "ran above" : "none on this machine"}`,
      () => {},
    );
  }
}
