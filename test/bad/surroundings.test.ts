/** Unusual environments: full file systems, missing permissions, unusual descriptors and terminals. */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { compare, expectSaidOnce, expectSpeaksClearly } from "../behaviour.js";
import { anyInterpreter, environment, isRoot } from "../environment.js";
import {
  execute,
  type RecordedOutcome,
  type RunSettings,
  record,
  removeScratch,
  scratch,
  tidemark,
} from "../run.js";
import { afterMounting, asNobody, coverTmp, inShell } from "../shell.js";
import { bytesByLine, expectEstimate, topPlaces } from "../truth.js";

const python = anyInterpreter().path;
const MIB = 1 << 20;
const keeps = `import os, sys
def keep():
    return bytes(30 << 20)
kept = keep()
print("kept", len(kept), flush=True)
os._exit(5)
`;
afterAll(removeScratch);

/** The program behaves as without Tidemark, and its memory is in the recording. */
async function expectRecorded(settings: RunSettings): Promise<RecordedOutcome> {
  const { recorded } = await compare([python, "-c", keeps], settings);
  expect(recorded.status).toBe(5);
  expect(topPlaces(recorded.open().profileAt("end"), "live")[0]).toBe("keep <string>:3");
  return recorded;
}

describe("file systems", () => {
  const recording = () => join(scratch("/var/tmp"), "run.tidemark");

  test.skipIf(!isRoot)("/dev/shm and /tmp read-only", async () => {
    const lines = `mount -t tmpfs -o ro none /dev/shm\n${coverTmp("mount -o remount,ro /tmp")}`;
    await expectRecorded({ before: afterMounting(lines), recording: recording(), cwd: "/" });
  });

  test.skipIf(!isRoot)("/dev/shm and /tmp full", async () => {
    const fill = (place: string) => `head -c 1M /dev/zero > ${place}/fill 2>/dev/null || true`;
    const shm = `mount -t tmpfs -o size=64k none /dev/shm\n${fill("/dev/shm")}`;
    const before = afterMounting(`${shm}\n${coverTmp(fill("/tmp"))}`);
    await expectRecorded({ before, recording: recording(), cwd: "/" });
  });

  test.skipIf(!isRoot)("no access to /dev/shm and /tmp, and /var/tmp is noexec", async () => {
    const closed =
      "mount -t tmpfs -o mode=000 none /dev/shm\nmount -t tmpfs -o noexec none /var/tmp";
    const before = afterMounting(`${closed}\n${coverTmp("chmod 000 /tmp")}`);
    const home = join(scratch(process.env.HOME), "run.tidemark");
    await expectRecorded({ before, recording: home, cwd: "/" });
  });

  test.skipIf(!isRoot)(
    "a recording on a full device: one line, and the summary all the same",
    async () => {
      const folder = scratch();
      const before = afterMounting(`mount -t tmpfs -o size=8k none ${folder}`);
      const program = `${keeps.replace("os._exit(5)", "")}
import time
functions = []
for number in range(3000):
    exec("def f%d():\\n" % number + "\\n" * (number % 50) + "    return bytes(200_000)\\nkept_%d = f%d()" % (number, number))
time.sleep(1)
os._exit(5)`;
      const { recorded, ours } = await compare([python, "-c", program], {
        before,
        recording: join(folder, "run.tidemark"),
      });
      expect(recorded.status).toBe(5);
      expectSaidOnce(ours, /recording is incomplete.*ENOSPC/);
      expect(ours).toMatch(/exit code 5/);
      expect(ours).toMatch(/30\.[01] MiB .*keep/); // a small block of the same line may be sampled, too
    },
  );

  test("a recording whose folder does not exist, is no folder, or is a folder itself: refused, nothing runs", async () => {
    const note = join(scratch(), "note");
    for (const path of ["/no/such/folder/run.tidemark", "/dev/null/run.tidemark", scratch()]) {
      const { status, stderr } = await execute([tidemark, "run", "-o", path, "--", "touch", note]);
      expect([2, 3], stderr).toContain(status);
      expect(stderr.trimEnd().split("\n"), stderr).toHaveLength(1);
      expectSpeaksClearly(stderr);
      expect(existsSync(note)).toBe(false);
    }
  });

  test.skipIf(!isRoot)("a 64 MB /dev/shm with 64 workers that use it themselves", async () => {
    const program = `import multiprocessing, os
from multiprocessing import shared_memory
def work(start):
    block = shared_memory.SharedMemory(create=True, size=700_000)
    block.buf[:] = bytes(700_000)
    kept = bytes(2 << 20)
    start.wait()
    block.close()
    block.unlink()
    os._exit(0)
context = multiprocessing.get_context("fork")
start = context.Barrier(64)
workers = [context.Process(target=work, args=(start,)) for _ in range(64)]
for worker in workers: worker.start()
for worker in workers: worker.join()
print([worker.exitcode for worker in workers].count(0), flush=True)
os._exit(0)
`;
    const before = afterMounting("mount -t tmpfs -o size=64m none /dev/shm");
    const { recorded } = await compare([python, "-W", "ignore", "-c", program], { before });
    expect(recorded.stdout).toBe("64\n");
    const lines = bytesByLine(recorded.open().profileAt("end"), "allocated");
    expectEstimate(lines.get("work <string>:6"), 64 * (2 * MIB + 33));
  });
});

describe("limits", () => {
  test("ulimit -f: a recording that must stay short reports it; the program is not affected", async () => {
    // In blocks of 512 bytes; the program writes a file just below it.
    const program = `${keeps.replace("os._exit(5)", "")}
import tempfile, time
with tempfile.TemporaryFile() as file:
    file.write(bytes(15_000))
    file.flush()
    try:
        file.write(bytes(10_000)); file.flush()
    except OSError as error:
        print(error.strerror, flush=True)
for number in range(3000):
    exec("def f%d():\\n" % number + "\\n" * (number % 50) + "    return bytes(200_000)\\nkept_%d = f%d()" % (number, number))
os._exit(5)`;
    const { recorded, ours } = await compare([python, "-c", program], {
      before: inShell("ulimit -f 32"),
    });
    expect(recorded.status).toBe(5);
    expect(recorded.stdout).toMatch(/File too large/);
    expectSaidOnce(ours, /file too large/i);
  });

  test.each([0, 1, 64])(
    "ulimit -f %i: the program runs with exactly that limit, Tidemark reports what it cannot do",
    async (blocks) => {
      // Files may end up empty under this limit, so the outcome goes through pipes.
      const program = `import os, resource, time
kept = bytes(30 << 20)
print(resource.getrlimit(resource.RLIMIT_FSIZE), flush=True)
time.sleep(1)
os._exit(5)`;
      const command = (words: string) => [
        "sh",
        "-c",
        `{ { ulimit -f ${blocks}; ${words}; echo "status $?"; } 2>&1; } | cat`,
        python,
        program,
      ];
      const folder = scratch();
      const plain = await execute(command('"$0" -c "$1"'));
      const run = `'${tidemark}' run -o '${folder}/run.tidemark' --json '${folder}/summary.json'`;
      const recorded = await execute(command(`${run} -- "$0" -c "$1"`));
      expect(recorded.stdout).toContain(`(${blocks * 512}, ${blocks * 512})`);
      expect(plain.stdout).toMatch(/status 5$/m);
      expect(recorded.stdout).toMatch(/status 5$/m);
      expectSpeaksClearly(recorded.stdout);
      // If the limit may be raised there is a profile, otherwise a line that reports it.
      expect(recorded.stdout).toMatch(/is incomplete|ulimit -f|30\.0 MiB/);
    },
  );

  test("ulimit -n 16: few descriptors, and the soft limit stays the program's", async () => {
    const program = `import os, resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE))\nopened = []\ntry:\n    while True: opened.append(os.dup(1))\nexcept OSError as error:\n    count = len(opened)\n    for number in opened: os.close(number)\n    print(count, error.strerror)\n${keeps}`;
    const { recorded } = await compare([python, "-c", program], {
      before: inShell("ulimit -S -n 16"),
    });
    expect(recorded.status).toBe(5);
  });

  test("ulimit -v: a program that runs into its limit fails as it would alone", async () => {
    const program = `import sys\nkept = []\ntry:\n    while True: kept.append(bytes(64 << 20))\nexcept MemoryError:\n    print("no more memory", len(kept) > 2)\n`;
    const { recorded } = await compare([python, "-c", program], {
      before: inShell("ulimit -S -v 1500000"),
    });
    expect(recorded.stdout).toBe("no more memory True\n");
  });

  test("ulimit -v below what the recorder needs: the limit applies to the program, not to the recorder", async () => {
    await expectRecorded({ before: inShell("ulimit -S -v 700000") });
  });

  test("a hard ulimit -v that leaves the recorder no room: the program runs, and a line reports it", async () => {
    const { setpriv } = environment.tools;
    const unprivileged = isRoot && setpriv ? [setpriv, "--bounding-set", "-sys_resource"] : [];
    const before = [...unprivileged, ...inShell("ulimit -v 700000")];
    const plain = await execute([python, "-c", keeps], { before });
    const { stdout, stderr, status } = await execute([tidemark, "run", "--", python, "-c", keeps], {
      before,
    });
    expect({ stdout, status }).toEqual({ stdout: plain.stdout, status: plain.status });
    expectSaidOnce(stderr, /not recorded: ulimit -v leaves 683 MiB of address space/);
  });

  test("a command that needs only Node says that ulimit -v leaves it no room", async () => {
    const { stdout, stderr, status } = await execute([tidemark, "ps"], {
      before: inShell("ulimit -v 110000"),
    });
    expect({ stdout, status }).toEqual({ stdout: "", status: 4 });
    expect(stderr).toMatch(
      /^tidemark: ulimit -v leaves 107 MiB of address space, and Node\.js needs/,
    );
    const soft = await execute([tidemark, "--version"], {
      before: inShell("ulimit -S -v 110000"),
    });
    expect(soft.status).toBe(0);
  });

  test("ulimit, umask, nice, directory and signals are handed on", async () => {
    const program = `import os, resource, signal
for name in sorted(dir(resource)):
    if name.startswith("RLIMIT_"): print(name, resource.getrlimit(getattr(resource, name)))
print(oct(os.umask(0)), os.nice(0), os.getcwd())
print(sorted(os.listdir("/proc/self/fd")))
for line in open("/proc/self/status"):
    if line.startswith(("Sig", "Shd", "NoNewPrivs", "Cap", "Seccomp", "Groups", "Cpus_allowed_list")) and not line.startswith("SigQ"): print(line, end="")
print(open("/proc/self/oom_score_adj").read(), open("/proc/self/coredump_filter").read())
print(os.getsid(0) == os.getpgrp(), os.isatty(0))
`;
    const before = inShell("ulimit -S -s 4096; ulimit -c 0; umask 0123; trap '' USR2 QUIT");
    const settings = { before: [...before, "nice", "-n", "3"], cwd: "/usr" };
    const { recorded } = await compare(["env", python, "-c", program], settings);
    expect(recorded.status).toBe(0);
  });
});

describe("descriptors, terminal and arguments", () => {
  test.each([
    ["stdin", "<&-"],
    ["stdout", ">&-"],
    ["stderr", "2>&-"],
    ["all three", "<&- >&- 2>&-"],
  ])("%s closed", async (_name, redirection) => {
    const program = `import os, sys
kept = bytes(20 << 20)
def is_open(number):
    try: os.fstat(number)
    except OSError: return 0
    return 1
os._exit(40 + sum(is_open(number) << number for number in range(6)))
`;
    const before = ["sh", "-c", `exec "$@" ${redirection}`, "sh"];
    const plain = await execute([python, "-c", program], { before });
    const recorded = await record([python, "-c", program], { before });
    expect(recorded.status).toBe(plain.status);
    expect(recorded.open().complete).toBe(true);
  });

  test("stdin is read to its end, inherited descriptors stay what they were", async () => {
    const program = `import os, sys\ntext = sys.stdin.read()\nprint(len(text), text[-4:])\nprint(os.read(7, 100))\n${keeps}`;
    const before = [
      "sh",
      "-c",
      'exec 8<&0; echo seventh | { exec 7<&0 <&8 8<&-; exec "$@"; }',
      "sh",
    ];
    const { recorded } = await compare([python, "-c", program], {
      before,
      input: `${"x".repeat(300_000)}end\n`,
    });
    expect(recorded.stdout).toMatch(/300004 end/);
    expect(recorded.stdout).toMatch(/seventh/);
  });

  test("if a reader closes its pipe, SIGPIPE ends the program as usual", async () => {
    const command = [
      python,
      "-c",
      "import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nkept = bytes(20 << 20)\nwhile True: print('y' * 1000)",
    ];
    const before = ["sh", "-c", '{ "$@"; echo "status $?" >&2; } | head -c 10', "sh"];
    const plain = await execute(command, { before });
    const recorded = await record(command, { before });
    expect(plain.stderr).toMatch(/status 141/);
    expect(recorded.stderr).toMatch(/status 141/);
    expect(recorded.open().complete).toBe(true);
  });

  test("a terminal: size and foreground group; raw mode is restored", async () => {
    const program = `import os, sys, termios
print([os.isatty(number) for number in range(3)], os.get_terminal_size(), os.tcgetpgrp(0) == os.getpgrp(), flush=True)
os._exit(5)
`;
    const inTerminal = (words: readonly string[]) => [
      "script",
      "-qec",
      `stty rows 33 cols 111; ${words.map(quote).join(" ")}; echo "status $?"; stty -a | grep -o -- '-*echo '`,
      "/dev/null",
    ];
    const plain = await execute(inTerminal([python, "-c", program]));
    const path = join(scratch(), "run.tidemark");
    const recorded = await execute(
      inTerminal([tidemark, "run", "--quiet", "-o", path, "--", python, "-c", program]),
    );
    expect(plain.stdout).toMatch(
      /\[True, True, True\] os.terminal_size\(columns=111, lines=33\) True/,
    );
    expect(recorded.stdout).toBe(plain.stdout);
  });

  test("nohup around Tidemark, and under it", async () => {
    const program = `import signal\nprint(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)\n${keeps}`;
    const { recorded } = await compare([python, "-c", program], { before: ["nohup"] });
    expect(recorded.stdout).toMatch(/True\nkept/);
    const below = await compare(["nohup", python, "-c", program]);
    expect(below.recorded.stdout).toMatch(/True\nkept/);
  });

  test("a huge command line, and words of every kind", async () => {
    const program =
      "import hashlib, sys\nprint(len(sys.argv), hashlib.sha256('\\0'.join(sys.argv).encode('utf-8', 'surrogateescape')).hexdigest())";
    const odd = [
      "",
      " ",
      "a\tb",
      "line\nbreak",
      "back\\slash",
      "\\t\\n",
      "--",
      "-o",
      "--help",
      "$HOME",
      "'\"",
      "\u00e9\u{1f40d}",
      "\u001b[31m",
    ];
    const { recorded } = await compare([
      python,
      "-c",
      program,
      ...odd,
      "x".repeat(120_000),
      ...Array.from({ length: 8000 }, (_, i) => `argument-${i}-${"y".repeat(100)}`),
    ]);
    expect(recorded.stdout).toMatch(/^8015 /);
    expect((await recorded.summary()).target.command[0]).toBe(python);
  });
});

describe.skipIf(!isRoot)("another user", () => {
  test("runs a program under Tidemark", async () => {
    const folder = scratch();
    const recording = join(folder, "run.tidemark");
    const own = environment.interpreters.find(({ path }) => path.startsWith("/usr/"))?.path;
    // That user cannot access an interpreter below another user's private home directory.
    const settings = { before: asNobody, recording, env: { HOME: folder } };
    const { recorded } = await compare(
      [own ?? "/bin/true", ...(own ? ["-c", keeps] : [])],
      settings,
    );
    expect(statSync(recording).uid).toBe(65534);
    expect((await recorded.summary()).processes[0]?.profiled).toBe(true);
  });

  test("may not read another user's recording", async () => {
    const recorded = await record(["true"]);
    const { status, stdout, stderr } = await execute(["chmod", "600", recorded.path]);
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
    const refused = await execute([tidemark, "summary", recorded.path], {
      before: asNobody,
    });
    expect(refused.status).toBe(3);
    expect(refused.stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(refused.stderr).toMatch(/TM-E004/);
  });

  test("may not write to the path given for the recording", async () => {
    const folder = scratch();
    mkdirSync(join(folder, "closed"), { mode: 0o755 });
    const refused = await execute(
      [tidemark, "run", "-o", join(folder, "closed", "run.tidemark"), "--", "true"],
      { before: asNobody },
    );
    expect(refused.status).toBe(3);
    expect(refused.stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
