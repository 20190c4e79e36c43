/** Programs that fork, exec, daemonise, close and change whatever they like. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import { compare, expectSaidOnce, expectSame } from "../behaviour.js";
import { anyInterpreter, environment, isRoot } from "../environment.js";
import { execute, readText, record, removeScratch, scratch, until } from "../run.js";
import { bytesByLine, expectEstimate, topPlaces } from "../truth.js";

const interpreter = anyInterpreter();
const python = interpreter.path;
const MIB = 1 << 20;
afterAll(removeScratch);

describe("many processes", () => {
  test("forks 200 children: each one's memory is counted, and none counts its parent's again", async () => {
    const program = `import os
kept = bytes(50 << 20)
def child():
    block = bytes(1 << 20)
    os._exit(0)
for number in range(200):
    if os.fork() == 0:
        child()
    os.wait()
print("all gone", flush=True)
os._exit(0)
`;
    const { recorded } = await compare([python, "-c", program]);
    const recording = recorded.open();
    const lines = bytesByLine(recording.profileAt("end"), "allocated");
    expectEstimate(lines.get("child <string>:4"), 200 * (MIB + 33));
    expectEstimate(lines.get("<module> <string>:2"), 50 * MIB + 33);
    expect((await recorded.summary()).limits).toEqual([]);
  });

  test("forks 200 children that live at once", async () => {
    const program = `import os, sys
read, write = os.pipe()
children = []
for number in range(200):
    pid = os.fork()
    if pid == 0:
        os.close(write)
        block = bytes(2 << 20)
        os.read(read, 1)
        os._exit(number % 7)
    children.append(pid)
import time
time.sleep(1)
os.close(write)
print(sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children), flush=True)
os._exit(0)
`;
    const { recorded } = await compare([python, "-c", program]);
    const summary = await recorded.summary();
    const children = summary.processes.filter(({ pid }) => pid !== summary.target.pid);
    expect(children).toHaveLength(200);
    expect(children.filter(({ profiled }) => profiled)).toHaveLength(200);
    expect(children.every(({ parentPid }) => parentPid === summary.target.pid)).toBe(true);
    expectEstimate(
      bytesByLine(recorded.open().profileAt("end"), "allocated").get("<module> <string>:8"),
      200 * (2 * MIB + 33),
    );
  });

  test("more processes than slots: uncounted ones are reported", async () => {
    const program = `import os
for number in range(1300):
    if os.fork() == 0:
        block = bytes(1 << 20)
        os._exit(0)
    os.wait()
print("done", flush=True)
os._exit(0)
`;
    const { recorded } = await compare([python, "-c", program]);
    const counted = bytesByLine(recorded.open().profileAt("end"), "allocated");
    const { limits } = await recorded.summary();
    const child = counted.get("<module> <string>:4");
    if (limits.length > 0) {
      expect(limits.join("\n")).toMatch(/process/);
    } else {
      expectEstimate(child, 1300 * (MIB + 33));
    }
    expect(child?.bytes).toBeGreaterThan(800 * MIB);
  });

  test("children that are reaped only at the end, faster than slots become free: each is counted or reported", async () => {
    // Blocks that no period leaves unsampled: a child takes its slot at its first sample.
    const program = `import os
for number in range(1300):
    if os.fork() == 0:
        block = bytes(128 << 20)
        os._exit(0)
for number in range(1300): os.wait()
os._exit(0)
`;
    const { recorded } = await compare([python, "-c", program]);
    const summary = await recorded.summary();
    const said = /(\d+) process(?:es)? ran unprofiled/.exec(summary.limits.join("\n"));
    const profiled = summary.processes.filter(({ profiled: agent }) => agent).length - 1;
    expect(profiled + Number(said?.[1] ?? 0), summary.limits.join(" ")).toBe(1300);
    const lines = bytesByLine(recorded.open().profileAt("end"), "allocated");
    expectEstimate(lines.get("<module> <string>:4"), profiled * (128 * MIB + 33));
  });

  const workers = `import os, signal, sys, time
kept = bytes(20 << 20)
go, ready = os.pipe(), os.pipe()
def work():
    return bytes(2 << 20)
children = []
for number in range(64):
    children.append(os.fork())
    if children[-1] == 0:
        mine = work()
        os.write(ready[1], b"r")
        os.read(go[0], 1)
        if sys.argv[1] == "killed": time.sleep(100)
        os._exit(0)
for number in range(64): os.read(ready[0], 1)
time.sleep(0.5)
os.write(go[1], b"g" * 64)
if sys.argv[1] == "killed": os.killpg(os.getpgrp(), signal.SIGKILL)
for child in children: os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
os._exit(0)
`;
  const liveOf = async (how: string) => {
    // In its own group, so that its SIGKILL does not reach the guard.
    const recorded = await record(["setsid", "-w", python, "-c", workers, how]);
    return bytesByLine(recorded.open().profileAt("end"), "live");
  };

  test("workers that end just before the program, by themselves: none of their memory is live at its end", async () => {
    const lines = await liveOf("ended");
    expect(lines.get("work <string>:5")?.bytes ?? 0).toBe(0);
    expectEstimate(lines.get("<module> <string>:2"), 20 * MIB + 33);
  });

  test("workers that are killed together with the program: the heap of their last moment", async () => {
    const lines = await liveOf("killed");
    expectEstimate(lines.get("work <string>:5"), 64 * (2 * MIB + 33));
    expectEstimate(lines.get("<module> <string>:2"), 20 * MIB + 33);
  });

  test("an exec chain: the last image's memory, under the same pid", async () => {
    const third = "import os\ndef last():\n    return bytes(30 << 20)\nkept = last()\nos._exit(6)";
    const second = `import os, sys\nblock = bytes(5 << 20)\nos.execv(sys.executable, [sys.executable, "-c", ${JSON.stringify(third)}])`;
    const first = `import os, sys\nblock = bytes(5 << 20)\nos.execv("/bin/sh", ["sh", "-c", 'exec "$0" "$@"', sys.executable, "-c", ${JSON.stringify(second)}])`;
    const { recorded } = await compare([python, "-c", first]);
    expect(recorded.status).toBe(6);
    const summary = await recorded.summary();
    expect(new Set(summary.processes.map(({ pid }) => pid)).size).toBe(1);
    expect(summary.sites[0]?.stack[0]).toMatchObject({ function: "last", line: 3 });
    expect(Math.abs((summary.sites[0]?.liveBytes ?? 0) / (30 * MIB + 33) - 1)).toBeLessThan(0.1);
    // The memory of the earlier images is gone.
    expect(summary.sites.slice(1).every(({ liveBytes }) => liveBytes < 4 * MIB)).toBe(true);
  });

  test("an exec of a program without an agent: its predecessor's memory no longer counts", async () => {
    const alone = `import os
kept = bytes(30 << 20)
os.execve("/bin/sleep", ["sleep", "3"], {})`;
    for (const program of [
      alone,
      `import os\nif os.fork() == 0:\n    ${alone.replace(/\n/g, "\n    ")}\nos.wait()\nos._exit(0)`,
    ]) {
      const { recorded } = await compare([python, "-c", program]);
      expect(recorded.status).toBe(0);
      const recording = recorded.open();
      const line = program === alone ? 2 : 4;
      const place = `<module> <string>:${line}`;
      expectEstimate(
        bytesByLine(recording.profileAt("end"), "allocated").get(place),
        30 * MIB + 33,
      );
      expect(bytesByLine(recording.profileAt("end"), "live").get(place)?.bytes ?? 0).toBe(0);
      expect(recording.series.at(-1)?.values.get("liveBytes")?.findLast(Number.isFinite)).toBe(0);
    }
  });

  test("a tree of subprocesses with shells in between: each Python has its own line", async () => {
    const leaf =
      "import os, time\ndef leaf():\n    return bytes(20 << 20)\nkept = leaf()\ntime.sleep(3)\nprint('leaf', flush=True)\nos._exit(0)";
    const middle = `import subprocess, sys, os\nkept = bytes(10 << 20)\nsubprocess.run(["sh", "-c", '"$0" -c "$1"; exit 3', sys.executable, ${JSON.stringify(leaf)}])\nprint("middle", flush=True)\nos._exit(0)`;
    // Two branches at once; the root prints what each wrote, in the order of their creation.
    const root = `import subprocess, sys, os\nkept = bytes(5 << 20)\nchildren = [subprocess.Popen([sys.executable, "-c", ${JSON.stringify(middle)}], stdout=subprocess.PIPE) for _ in range(2)]\nprint([(child.communicate()[0], child.returncode) for child in children], flush=True)\nos._exit(0)`;
    const plain = await execute([python, "-c", root]);
    const recorded = await record([python, "-c", root]);
    expectSame(plain, recorded);
    const summary = await recorded.summary();
    const pythons = summary.processes.filter(
      ({ python: version }) => version === interpreter.version,
    );
    expect(pythons).toHaveLength(5);
    const byPid = new Map(summary.processes.map((process) => [process.pid, process]));
    const depth = (pid: number): number =>
      byPid.has(pid) ? 1 + depth((byPid.get(pid) as { parentPid: number }).parentPid) : 0;
    expect(pythons.map(({ pid }) => depth(pid)).sort()).toEqual([1, 2, 2, 4, 4]);
    expectEstimate(
      bytesByLine(recorded.open().profileAt("end"), "allocated").get("leaf <string>:3"),
      2 * (20 * MIB + 33),
    );
  });

  test("--no-follow: children run, and stay unprofiled", async () => {
    const program = `import subprocess, sys, os\nkept = bytes(8 << 20)\nsubprocess.run([sys.executable, "-c", "import time; kept = bytes(64 << 20); time.sleep(0.6); print('child')"])\nos._exit(0)`;
    const { recorded } = await compare([python, "-c", program], { options: ["--no-follow"] });
    const summary = await recorded.summary();
    expect(summary.processes.filter(({ profiled }) => profiled)).toHaveLength(1);
    const allocated = summary.sites.reduce((sum, site) => sum + site.allocatedBytes, 0);
    expect(allocated).toBeLessThan(60 * MIB);
  });

  test("multiprocessing: fork, spawn and forkserver pools", async () => {
    const folder = scratch();
    for (const method of ["fork", "spawn", "forkserver"]) {
      const program = join(folder, `${method}.py`);
      writeFileSync(
        program,
        `import multiprocessing, time
kept = []
def work(number):
    kept.append(bytes(4 << 20))
    time.sleep(0.05)
    return number
if __name__ == "__main__":
    multiprocessing.set_start_method(${JSON.stringify(method)})
    with multiprocessing.Pool(3) as pool:
        print(sum(pool.map(work, range(24), chunksize=1)))
`,
      );
      const { recorded } = await compare([python, program]);
      expect(recorded).toMatchObject({ status: 0, stdout: "276\n" });
      const lines = bytesByLine(recorded.open().profileAt("end"), "allocated");
      expectEstimate(lines.get(`work ${method}.py:4`), 24 * (4 * MIB + 33));
    }
  });
});

describe("a program that changes its environment", () => {
  test("closes all its descriptors", async () => {
    const program = `import os
os.write(1, b"closing\\n")
os.closerange(0, 70000)
def after():
    return bytes(30 << 20)
kept = after()
if os.fork() == 0:
    own = bytes(20 << 20)
    os._exit(0)
os.wait()
os._exit(len(os.listdir("/proc/self/fd")) + 40)
`;
    const { recorded } = await compare([python, "-c", program]);
    const profile = recorded.open().profileAt("end");
    expect(topPlaces(profile, "live")[0]).toBe("after <string>:5");
    expectEstimate(bytesByLine(profile, "allocated").get("<module> <string>:8"), 20 * MIB + 33);
  });

  test("changes its directory, to one that is then removed", async () => {
    const program = `import os, tempfile
os.chdir(tempfile.mkdtemp())
os.rmdir(os.getcwd())
def after():
    return bytes(30 << 20)
kept = after()
print("still here", flush=True)
os._exit(0)
`;
    const { recorded } = await compare([python, "-c", program]);
    expect(topPlaces(recorded.open().profileAt("end"), "live")[0]).toBe("after <string>:5");
  });

  test("daemonises: Tidemark ends with its program, the daemon continues", async () => {
    const run = async (under: boolean) => {
      const [note, go] = [join(scratch(), "note"), join(scratch(), "go")];
      const program = `import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.closerange(0, 100)
kept = []
for number in range(60): kept.append(bytes(1 << 20))
while not os.path.exists(sys.argv[2]): time.sleep(0.05)
with open(sys.argv[1], "w") as note:
    note.write("%d blocks" % len(kept))
`;
      const command = [python, "-c", program, note, go];
      // The daemon waits for the file, so this returns only if Tidemark does not wait for the daemon.
      const outcome = under ? await record(command) : await execute(command);
      writeFileSync(go, "");
      await until(() => readText(note) !== "");
      return { outcome, note: readText(note) };
    };
    const plain = await run(false);
    const recorded = await run(true);
    expect([plain.note, recorded.note]).toEqual(["60 blocks", "60 blocks"]);
    const ours = expectSame(plain.outcome, recorded.outcome);
    expectSaidOnce(ours, /no longer recorded/);
  });

  test("daemonises at any moment while its end is recorded: the daemon is reported", async () => {
    const program = `import os, sys, time
root = os.getpid()
if os.fork(): os._exit(0)
os.setsid()
while os.getppid() == root: pass
end = time.perf_counter() + float(sys.argv[1]) / 1000
while time.perf_counter() < end: pass
if os.fork(): os._exit(0)
os.closerange(0, 100)
time.sleep(10)
`;
    for (const delayMs of [0, 3, 4, 5, 6, 8, 10, 12, 16, 20, 40]) {
      const { ours } = await compare([python, "-c", program, String(delayMs)]);
      expectSaidOnce(ours, /no longer recorded/);
    }
  });

  test.skipIf(!isRoot)("changes its user, and forks as the new one", async () => {
    const program = `import os
os.setgid(65534)
os.setuid(65534)
def after():
    return bytes(30 << 20)
kept = after()
if os.fork() == 0:
    own = bytes(20 << 20)
    os._exit(0)
print(os.wait()[1], os.getuid(), flush=True)
os._exit(0)
`;
    const { recorded } = await compare([python, "-c", program]);
    const profile = recorded.open().profileAt("end");
    expect(topPlaces(profile, "live")[0]).toBe("after <string>:5");
    const child = bytesByLine(profile, "allocated").get("<module> <string>:8")?.bytes;
    if (child === undefined) {
      expect((await recorded.summary()).limits.join("\n")).toMatch(/process/);
    } else {
      expect(Math.abs(child / (20 * MIB + 33) - 1)).toBeLessThan(0.1);
    }
  });

  test("reads its environment: only the two variables that Tidemark needs are new", async () => {
    const program = "import json, os\nprint(json.dumps(dict(os.environ)))";
    const settings = {
      cwd: "/usr",
      env: {
        ...{ EMPTY: "", ODD: "a\tb\\n=c \u00e9", LD_LIBRARY_PATH: "/nowhere" },
        NODE_EXTRA_CA_CERTS: "/nowhere.pem",
      },
    };
    const plain = JSON.parse((await execute([python, "-c", program], settings)).stdout);
    const recorded = JSON.parse((await record([python, "-c", program], settings)).stdout);
    for (const [name, value] of Object.entries(plain)) {
      expect(recorded[name], name).toBe(value);
    }
    const added = Object.keys(recorded).filter((name) => !(name in plain));
    expect(added.filter((name) => name !== "LD_PRELOAD" && !name.startsWith("TIDEMARK"))).toEqual(
      [],
    );
  });

  test("a program with its own LD_PRELOAD loads both libraries", async () => {
    const cc = present(environment.tools.cc);
    const folder = scratch();
    writeFileSync(
      join(folder, "own.c"),
      '#include <stdio.h>\n__attribute__((constructor)) static void here(void) { fputs("own library\\n", stderr); }\n',
    );
    expect(
      (await execute([cc, "-shared", "-fPIC", join(folder, "own.c"), "-o", join(folder, "own.so")]))
        .status,
    ).toBe(0);
    const settings = { env: { LD_PRELOAD: join(folder, "own.so") } };
    const recorded = await record(
      [
        python,
        "-c",
        "import os\ndef keep():\n    return bytes(20 << 20)\nkept = keep()\nos._exit(0)",
      ],
      settings,
    );
    expect(recorded.stderr).toMatch(/own library/);
    expect(topPlaces(recorded.open().profileAt("end"), "live")[0]).toBe("keep <string>:3");
  });

  test("clears its environment and calls exec: behaves as without Tidemark", async () => {
    const program =
      "import os, sys\nos.execve(sys.executable, [sys.executable, '-c', 'import os; kept = bytes(20 << 20); print(sorted(os.environ)); os._exit(0)'], {'ONLY': 'this'})";
    const plain = await execute([python, "-c", program]);
    const recorded = await record([python, "-c", program]);
    expectSame(plain, recorded, (text) => text.replace(/'(LD_PRELOAD|TIDEMARK\w*)',? ?/g, ""));
  });
});
