/**
 * Unusual interpreters and allocators: hosts that embed the interpreter, other allocators, builds that must be
 * refused by name, several interpreters.
 */

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { remoteExec } from "../../src/cpython/entry/remote_exec.js";
import { present } from "../../src/model/base/present.js";
import { openRecording } from "../../src/record/index.js";
import { anyInterpreter, environment, isRoot } from "../environment.js";
import {
  attach,
  commandOf,
  killAll,
  nameOf,
  profileSoFar,
  removeScratch,
  scratch,
  start,
  startCommand,
} from "./targets.js";

afterEach(killAll);
afterAll(removeScratch);

const { tools } = environment;
const chroot = isRoot ? environment.chroot : null;
const exec = (pid: number, waitMs = 30_000) => remoteExec(pid, "return 'ran'", { waitMs });

const SERVICE = `
import time
kept = []
print("up", flush=True)
while True:
    kept.append(bytearray(50_000))
    if len(kept) > 300: del kept[:]
    time.sleep(0.001)`;

describe("hosts", () => {
  test.runIf(tools.cc)("a program in C that embeds the interpreter", async () => {
    const shared = environment.interpreters.find((one) => one.sharedLibrary && !one.chroot);
    if (shared === undefined) {
      return;
    }
    const config = spawnSync(
      shared.path,
      [
        "-c",
        "import sysconfig as s; print(s.get_path('include'), s.get_config_var('LIBDIR'), s.get_config_var('LDVERSION'))",
      ],
      { encoding: "utf8" },
    );
    const [include, libraries, version] = config.stdout.trim().split(" ") as [
      string,
      string,
      string,
    ];
    if (!existsSync(join(include, "Python.h"))) {
      return;
    }
    const source = join(scratch, "host.c");
    writeFileSync(
      source,
      `#include <Python.h>
#include <unistd.h>
int main(void) {
    Py_Initialize();
    PyRun_SimpleString(${JSON.stringify(SERVICE.replace("while True", "for _ in range(1000)"))});
    Py_BEGIN_ALLOW_THREADS
    char typed;
    while (read(0, &typed, 1) != 0);
    Py_END_ALLOW_THREADS
    return Py_FinalizeEx();
}`,
    );
    const host = join(scratch, "host");
    const built = spawnSync(present(tools.cc), [
      ...[source, "-o", host, `-I${include}`, `-L${libraries}`, `-lpython${version}`],
      `-Wl,-rpath,${libraries}`,
    ]);
    expect(built.status, String(built.stderr)).toBe(0);
    const target = await startCommand([host], { PYTHONUNBUFFERED: "1" });
    expect((await attach(target.pid)).open().complete).toBe(true);
    // Its main thread then waits in C code that has released the lock.
    expect((await exec(target.pid)).text).toBe("ran");
    target.child.stdin?.end();
    expect(await target.ended()).toEqual({ code: 0, signal: null });
  });

  /** The application is found in the folder that the host runs in. */
  const APPLICATION = `
import os
kept = []
def application(environ, start_response):
    kept.append(bytearray(50_000))
    if len(kept) > 300: del kept[:]
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
`;
  const wheel = environment.packagesPython?.replace(/python$/, "pyuwsgi") ?? "";
  const uwsgis = [
    { name: "uWSGI from its wheel", command: [wheel], folder: scratch, found: existsSync(wheel) },
    {
      name: "Debian's uWSGI, which loads libpython as a plug-in, in a chroot",
      command: ["chroot", chroot ?? "", "/usr/bin/uwsgi_python3"],
      folder: `${chroot}/tmp`,
      found: chroot !== null && existsSync(`${chroot}/usr/bin/uwsgi_python3`),
    },
  ];
  for (const { name, command, folder, found } of uwsgis) {
    test.runIf(found)(`${name}: a worker under load, and the idle master`, async () => {
      const file = join(folder, `tidemark-application-${process.pid}.py`);
      writeFileSync(file, APPLICATION);
      const inside = command[0] === "chroot" ? file.slice(present(chroot).length) : file;
      try {
        const target = await startCommand(
          [
            ...[...command, "--http-socket", "127.0.0.1:0", "--wsgi-file", inside],
            ...["--master", "--processes", "1", "--threads", "2", "--need-app"],
          ],
          {},
          "spawned uWSGI worker 1",
        );
        const port = /127\.0\.0\.1:(\d+) \(port auto-assigned\)/.exec(target.output())?.[1];
        const ask = async () => (await fetch(`http://127.0.0.1:${port}/`)).text();
        const worker = Number(await ask());
        let asking = true;
        let asked = 0;
        const load = (async () => {
          for (; asking; asked++) {
            expect(Number(await ask())).toBe(worker);
          }
        })();
        const recording = (
          await attach(worker, { enough: (elapsedMs) => elapsedMs > 700 && asked > 300 })
        ).open();
        asking = false;
        await load;
        expect(recording.processes[0]).toMatchObject({ pid: worker, profiled: true });
        const { sites } = recording.profileAt("end");
        expect(sites.stack.length).toBeGreaterThan(0);
        expect((await exec(worker)).text).toBe("ran"); // no request is under way
        expect((await exec(target.pid)).text).toBe("ran");
        expect(Number(await ask())).toBe(worker);
        process.kill(target.pid, "SIGINT");
        expect(await target.ended(), target.output()).toMatchObject({ signal: null });
      } finally {
        rmSync(file, { force: true });
      }
    });
  }
});

/** The command that starts a Python with the library preloaded, on this machine or else in the chroot. */
function preloaded(library: string): string[] | null {
  const listed = spawnSync("ldconfig", ["-p"], { encoding: "utf8" }).stdout ?? "";
  const here = listed
    .split("\n")
    .find((line) => line.trim().startsWith(`${library} (libc6,x86-64)`));
  if (here !== undefined) {
    return ["env", `LD_PRELOAD=${here.split(" => ")[1]}`, ...commandOf(anyInterpreter())];
  }
  const inside = environment.interpreters.find((one) => one.chroot && !one.freeThreaded);
  const path = `/usr/lib/x86_64-linux-gnu/${library}`;
  return chroot !== null && inside !== undefined && existsSync(`${chroot}${path}`)
    ? ["chroot", chroot, "/usr/bin/env", `LD_PRELOAD=${path}`, inside.path]
    : null;
}

const UNTIL_TOLD = "while not select.select([sys.stdin], [], [], 0)[0]";
const TICKS_UNTIL_TOLD = "while not select.select([sys.stdin], [], [], 0.02)[0]: pass";

describe("other allocators", () => {
  for (const library of ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"]) {
    const command = preloaded(library);
    test.runIf(command)(`${library} preloaded: recorded twice, and unharmed`, async () => {
      const target = await startCommand([
        ...present(command),
        ...["-u", "-c", `import select, sys\n${SERVICE.replace("while True", UNTIL_TOLD)}`],
      ]);
      expect(readFileSync(`/proc/${target.pid}/maps`, "utf8")).toContain(library.split(".")[0]);
      for (let round = 0; round < 2; round++) {
        const recording = (await attach(target.pid)).open();
        expect(recording.processes[0]?.profiled).toBe(true);
        const { sites } = recording.profileAt("end");
        const allocated = sites.allocatedBytes.reduce((sum, bytes) => sum + bytes, 0);
        expect(allocated).toBeGreaterThan(1e6);
      }
      target.child.stdin?.end();
      expect(await target.ended(), target.output()).toEqual({ code: 0, signal: null });
    });
  }
});

describe.runIf(tools.cc)("static thread-local storage is used up by libraries", () => {
  const source = join(scratch, "storage.c");
  beforeAll(() => {
    writeFileSync(
      source,
      `__thread char block[BYTES] __attribute__((tls_model("initial-exec"), visibility("default"))) = {1};
char *of_thread(void) { return block; }`,
    );
    for (const bytes of [256, 16]) {
      const library = join(scratch, `${bytes}.so`);
      const words = ["-shared", "-fPIC", `-DBYTES=${bytes}`, source, "-o", library];
      expect(spawnSync(present(tools.cc), words).status).toBe(0);
    }
  });
  const threadsIn = (path: string) => new Set(profileSoFar(path)?.sites.thread).size;
  const own = environment.interpreters.filter((one) => !one.chroot && !one.freeThreaded);
  test.each(own.map((one) => [nameOf(one), one] as const))("%s", async (_name, interpreter) => {
    // Each copy of a library takes its own part, until the loader has none left.
    const target = await start(
      interpreter,
      `import ctypes, shutil, sys, threading, time
held = []
for size in (256, 16):
    try:
        for i in range(10000):
            copy = shutil.copy("${scratch}/%d.so" % size, "${scratch}/%d-%d-%d.so" % (threading.get_native_id(), size, i))
            held.append(ctypes.CDLL(copy))
    except OSError as error:
        assert "static TLS" in str(error), error
kept, ended = [], threading.Event()
def allocate():
    while not ended.is_set():
        kept.append(bytearray(50_000))
        time.sleep(0.001)
        if len(kept) > 300: del kept[:]
threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads: thread.start()
print("up", len(held), flush=True)
for line in sys.stdin: pass
ended.set()
for thread in threads: thread.join()
print("well")`,
    );
    // Twice: the next recording reuses what a thread was given.
    for (const native of [false, true]) {
      const { recordingPath } = await attach(target.pid, {
        native,
        enough: (elapsedMs, path) =>
          elapsedMs > 700 && (threadsIn(path) >= 8 || elapsedMs > 60_000),
      });
      const profile = openRecording(recordingPath).profileAt("end");
      const functions = profile.frames.function;
      expect(Array.from(functions, (name) => profile.strings[name])).toContain("allocate");
      expect(threadsIn(recordingPath)).toBeGreaterThanOrEqual(8);
    }
    expect(readFileSync(`/proc/${target.pid}/maps`, "utf8")).toContain("libtidemark-keyed.so");
    target.child.stdin?.end();
    expect(await target.ended(), target.output()).toEqual({ code: 0, signal: null });
  });
});

describe("builds that are refused before any write", () => {
  const roots = ["", ...(chroot === null ? [] : [chroot])];
  const debug = roots.flatMap((root) =>
    readdirSync(`${root}/usr/bin`)
      .filter((name) => /^python3\.\d+-dbg$/.test(name))
      .map((name) => ({ name, command: [...(root ? ["chroot", root] : []), `/usr/bin/${name}`] })),
  );
  const freeThreaded = environment.interpreters.filter((one) => one.freeThreaded);
  const builds = [
    ...debug.map((one) => ({ ...one, refusal: /TM-E034 .*debug build of CPython 3\.\d+/ })),
    ...freeThreaded.map((one) => ({
      name: nameOf(one),
      command: commandOf(one),
      refusal: /TM-E034 .*free-threaded build/,
    })),
  ];
  for (const { name, command, refusal } of builds) {
    test(name, async () => {
      const target = await startCommand([...command, "-u", "-c", SERVICE]);
      const before = readFileSync(`/proc/${target.pid}/maps`, "utf8").match(/\S+\.so\S*$/gm);
      await expect(attach(target.pid)).rejects.toThrow(refusal);
      expect(readFileSync(`/proc/${target.pid}/maps`, "utf8").match(/\S+\.so\S*$/gm)).toEqual(
        before,
      );
      expect(target.child.exitCode).toBeNull();
    });
  }
  if (debug.length === 0) {
    test.skip("Debian's debug builds: none here", () => {});
  }
  if (freeThreaded.length === 0) {
    test.skip("free-threaded builds: none here", () => {});
  }
});

describe("several interpreters", () => {
  const SUBINTERPRETER = `
import select, sys
try:
    import _interpreters
except ImportError:
    import _xxsubinterpreters as _interpreters
kept = _interpreters.create()
print("up", flush=True)
`;
  test("an idle main thread: refused in time with the reason, and everything is undone", async () => {
    const target = await start(
      anyInterpreter(),
      `${SUBINTERPRETER}\nsys.stdin.read()\nprint("well", flush=True)`,
    );
    // It has printed "up", and waits for its input a moment later.
    const state = () => readFileSync(`/proc/${target.pid}/stat`, "utf8");
    await expect.poll(state).toMatch(/\) S /);
    await expect(exec(target.pid, 700)).rejects.toThrow(/TM-E035 .*several interpreters/);
    target.child.stdin?.end();
    expect(await target.ended(), target.output()).toEqual({ code: 0, signal: null });
    expect(target.output()).toBe("up\nwell\n");
  });

  test("a main thread that runs Python code executes the request", async () => {
    const target = await start(
      anyInterpreter(),
      `${SUBINTERPRETER}\n${TICKS_UNTIL_TOLD}\nprint("well", flush=True)`,
    );
    expect((await exec(target.pid)).text).toBe("ran");
    expect((await attach(target.pid)).open().processes[0]?.profiled).toBe(true);
    target.child.stdin?.end();
    expect(await target.ended(), target.output()).toEqual({ code: 0, signal: null });
  });
});
