/** tidemark-guard itself, with a recorder that does nothing: the program's surroundings, its end, the pool. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CONSTANTS } from "../segment/layout.js";
import { PoolReader } from "../segment/pool.js";

const guard = fileURLToPath(new URL("../../dist/native/tidemark-guard", import.meta.url));
const recorder = fileURLToPath(new URL("./fixtures/recorder.mjs", import.meta.url));
const person = fileURLToPath(new URL("./fixtures/person.py", import.meta.url));
const surroundings = fileURLToPath(new URL("./fixtures/surroundings.py", import.meta.url));
/** What has not ended by then hangs. */
const HANGS_AFTER_MS = 60_000;
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-guard-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Script {
  readonly before?: readonly (readonly string[])[];
  readonly dieWhen?: string;
  readonly leave?: number;
}

let runs = 0;

function hosted(
  command: readonly string[],
  script: Script = {},
): { arguments: string[]; report: string } {
  const report = join(folder, `report-${runs++}`);
  return {
    arguments: [
      "host",
      "--",
      process.execPath,
      recorder,
      report,
      JSON.stringify(script),
      ...command,
    ],
    report,
  };
}

function run(command: readonly string[], script: Script = {}) {
  const { arguments: words, report } = hosted(command, script);
  const outcome = spawnSync(guard, words, {
    encoding: "utf8",
    cwd: folder,
    timeout: HANGS_AFTER_MS,
  });
  return {
    ...outcome,
    messages: readFileSync(report, "utf8")
      .split("\n")
      .map((line) => line.split("\t")),
  };
}

/** What a shell with odd habits gives to a program, alone and under the guard. */
function bySomeShell(preparation: string, command: readonly string[]) {
  const quoted = (words: readonly string[]) =>
    words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  const shell = (words: readonly string[]) =>
    spawnSync("bash", ["-c", `${preparation}\nexec ${quoted(words)}`], {
      encoding: "utf8",
      cwd: folder,
      input: "text",
      timeout: HANGS_AFTER_MS,
    });
  return { alone: shell(command), under: shell([guard, ...hosted(command).arguments]) };
}

describe("the program's surroundings are as without the guard", () => {
  test.each([
    ["a plain shell", ":"],
    ["nohup", "trap '' HUP"],
    ["ignored signals", "trap '' HUP INT QUIT PIPE USR1 USR2 TERM TSTP CHLD XFSZ"],
    ["open descriptors", "exec 3</etc/passwd 5>>/dev/null 77</dev/zero 2>/dev/null"],
    ["closed standard descriptors", "exec 0<&- 2>&-"],
    [
      "limits",
      "ulimit -Sn 300; ulimit -Hn 700; ulimit -Sf 100000; ulimit -Ss 4096; ulimit -Sc 0; ulimit -v 40000000",
    ],
    [
      "umask, directory, niceness, one processor",
      "umask 027; cd /; renice -n 3 $$ >/dev/null; taskset -cp 0 $$ >/dev/null",
    ],
  ])("%s", (_name, preparation) => {
    const { alone, under } = bySomeShell(preparation, [
      "python3",
      surroundings,
      "a b",
      "tab\there",
      "back\\slash",
      "",
      "neu\nline",
      "é",
    ]);
    expect(alone.status, alone.stderr).toBe(0);
    expect(under.status, under.stderr).toBe(0);
    expect(JSON.parse(under.stdout)).toEqual(JSON.parse(alone.stdout));
    expect(under.stderr).toBe(alone.stderr);
  });

  test("blocked signals stay blocked", () => {
    const block = `import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1, signal.SIGRTMIN + 2})
os.execvp(sys.argv[1], sys.argv[1:])`;
    const { alone, under } = bySomeShell(":", ["python3", surroundings]);
    expect(under.stdout).toBe(alone.stdout);
    const words = ["-c", block];
    const plain = spawnSync("python3", [...words, "python3", surroundings], {
      encoding: "utf8",
      cwd: folder,
    });
    const hostedWords = hosted(["python3", surroundings]).arguments;
    const blocked = spawnSync("python3", [...words, guard, ...hostedWords], {
      encoding: "utf8",
      cwd: folder,
    });
    expect(JSON.parse(blocked.stdout).signals).toEqual(JSON.parse(plain.stdout).signals);
    expect(JSON.parse(plain.stdout).signals.SigBlk).not.toMatch(/^0+$/);
  });

  test("environment: only what the recorder added", () => {
    const before = [["env", "LD_PRELOAD_OF_OURS", "a b:c\t=\n"]] as const;
    const { stdout } = run(["python3", surroundings], { before });
    const plain = spawnSync("python3", [surroundings], { encoding: "utf8", cwd: folder });
    expect(JSON.parse(stdout).environment).toEqual({
      ...JSON.parse(plain.stdout).environment,
      LD_PRELOAD_OF_OURS: "a b:c\t=\n",
    });
  });

  test("a pipe's reader sees its end as soon as the program lets go", async () => {
    const script = `import os, sys, time
os.write(1, b"bye"); os.close(1); os.close(0)
while not os.path.exists(sys.argv[1]): time.sleep(0.01)`;
    const go = join(folder, "go");
    const child = spawn(guard, hosted(["python3", "-c", script, go]).arguments, {
      stdio: ["pipe", "pipe", "inherit"],
    });
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
    });
    await new Promise((resolve) => child.stdout.once("end", resolve));
    expect(text).toBe("bye");
    expect(child.exitCode).toBeNull();
    openSync(go, "w");
    expect(await ended(child)).toEqual({ code: 0, signal: null });
  });
});

describe("the program's end is the guard's", () => {
  test.each([0, 1, 7, 126, 127, 128, 130, 143, 255])("exit code %i", (code) => {
    const { status, signal, messages } = run(["sh", "-c", `exit ${code}`]);
    expect({ status, signal }).toEqual({ status: code, signal: null });
    expect(messages.find(([verb]) => verb === "exited")?.[1]).toBe(String(code << 8));
  });

  test.each(["SIGTERM", "SIGKILL", "SIGSEGV", "SIGABRT", "SIGINT", "SIGPIPE", "SIGHUP"] as const)(
    "%s",
    (name) => {
      const { status, signal } = run(["sh", "-c", `ulimit -c 0; kill -${name.slice(3)} $$`]);
      expect({ status, signal }).toEqual({ status: null, signal: name });
    },
  );

  test("the recorder may leave with another code", () => {
    expect(run(["true"], { leave: 1 }).status).toBe(1);
  });

  test.each([
    ["no such program", ["/nonexistent/program"], "2"],
    ["not executable", ["/etc/passwd"], "13"],
    ["a directory", ["/etc"], "13"],
  ])("%s: the errno comes back", (_name, command, errno) => {
    const { messages, status } = run(command);
    expect(messages.find(([verb]) => verb === "failed")?.[1]).toBe(errno);
    expect(messages.some(([verb]) => verb === "started")).toBe(false);
    expect(status).toBe(127);
  });

  test("a recorder that cannot start: nothing runs", () => {
    const { status, stderr } = spawnSync(guard, ["host", "--", "/nonexistent/node"], {
      encoding: "utf8",
    });
    expect(status).toBe(127);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});

describe("signals", () => {
  const counter = `import signal, sys, time
seen = []
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, lambda number, frame: seen.append(signal.Signals(number).name))
print("ready", flush=True)
deadline = time.monotonic() + float(sys.argv[1])
while time.monotonic() < deadline: time.sleep(0.05)
print(",".join(seen))`;

  test.each(["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const)(
    "%s to the guard alone is passed on",
    async (name) => {
      const { child, output } = await startReady(["python3", "-c", counter, "1"]);
      process.kill(child.pid as number, name);
      expect(await ended(child)).toEqual({ code: 0, signal: null });
      expect(output()).toBe(`ready\n${name}\n`);
    },
  );

  test("one to the whole group comes once", async () => {
    const { child, output } = await startReady(["python3", "-c", counter, "1"]);
    process.kill(-(child.pid as number), "SIGTERM");
    expect(await ended(child)).toEqual({ code: 0, signal: null });
    expect(output()).toBe("ready\nSIGTERM\n");
  });

  test("twice, each way: the second is not taken for the first", async () => {
    const { child, output } = await startReady(["python3", "-c", counter, "2"]);
    process.kill(-(child.pid as number), "SIGUSR1");
    await new Promise((resolve) => setTimeout(resolve, 300));
    process.kill(child.pid as number, "SIGUSR1");
    await ended(child);
    expect(output()).toBe("ready\nSIGUSR1,SIGUSR1\n");
  });

  test("a program stopped and continued goes on to its end", async () => {
    const { child, output, program } = await startReady(["python3", "-c", counter, "1"]);
    process.kill(program, "SIGSTOP");
    await until(() => stateOf(child.pid as number) === "T");
    process.kill(child.pid as number, "SIGCONT");
    expect(await ended(child)).toEqual({ code: 0, signal: null });
    expect(output()).toBe("ready\n\n");
  });
});

describe("a terminal with job control", () => {
  const ticker = `import os, time
print("foreground", os.tcgetpgrp(0) == os.getpgrp())
for number in range(600):
    print("tick", number, flush=True); time.sleep(0.1)`;

  test("Ctrl-Z, jobs, fg and Ctrl-C do what they do without the guard", () => {
    writeFileSync(join(folder, "ticker.py"), ticker);
    const command = ["python3", join(folder, "ticker.py")];
    const drive = (words: readonly string[]) =>
      spawnSync("python3", [person, words.map((word) => `'${word}'`).join(" ")], {
        encoding: "utf8",
        timeout: 2 * HANGS_AFTER_MS,
      });
    const alone = drive(command);
    expect(alone.stderr).toBe("");
    const under = drive([guard, ...hosted(command).arguments]);
    expect(under.stderr).toBe("");
    expect(under.stdout).toBe(alone.stdout);
    expect(alone.stdout.trimEnd().split("\n")).toEqual([
      "foreground True",
      "stopped: True",
      "a job: True",
      "interrupted: True",
      "status 130",
      "-echo",
      "icanon",
    ]);
  });
});

describe("the pool", () => {
  const pool = [["pool", "8", "4096", "1"]] as const;

  test("is sealed, sized and says what was asked for", async () => {
    const { child, report } = await startReady(["sh", "-c", "echo ready; read line"], {
      before: pool,
    });
    const [, pid, descriptor] = messageOf(report, "pool");
    const file = openSync(`/proc/${pid}/fd/${descriptor}`, "r+");
    const header = new PoolReader(file).header();
    expect(header).toMatchObject({
      slotCount: 8,
      periodBytes: 4096,
      options: 1,
      keeperPid: child.pid,
      keeperFd: Number(descriptor),
    });
    expect(header.slotsOffset + 8 * CONSTANTS.TM_SLOT_STRIDE).toBe(
      statSync(`/proc/${pid}/fd/${descriptor}`).size,
    );
    const resize = spawnSync(
      "python3",
      ["-c", `import os\nos.truncate("/proc/${pid}/fd/${descriptor}", 4096)`],
      { encoding: "utf8" },
    );
    expect(resize.stderr).toMatch(/Operation not permitted/);
    child.stdin?.end("\n");
    expect(await ended(child)).toEqual({ code: 0, signal: null });
  });

  test("fits under a file-size limit, which stays the program's", () => {
    const { arguments: words, report } = hosted(["bash", "-c", "ulimit -f"], { before: pool });
    const quoted = words.map((word) => `'${word}'`).join(" ");
    const { stdout } = spawnSync("bash", ["-c", `ulimit -f 50000; exec ${guard} ${quoted}`], {
      encoding: "utf8",
    });
    expect(stdout.trim()).toBe("50000");
    expect(readFileSync(report, "utf8")).toMatch(/^pool\t/m);
  });

  test("no room at all is an answer, not an end", () => {
    const { arguments: words, report } = hosted(["sh", "-c", "echo runs"], { before: pool });
    const quoted = words.map((word) => `'${word}'`).join(" ");
    const { stdout, status } = spawnSync("bash", ["-c", `ulimit -f 10; exec ${guard} ${quoted}`], {
      encoding: "utf8",
    });
    expect({ stdout, status }).toEqual({ stdout: "runs\n", status: 0 });
    expect(readFileSync(report, "utf8")).toMatch(/^nopool\t27\t/m);
  });

  test("outlives a recorder that is killed: the used slots are left, the program goes on", () => {
    const orphan = join(folder, "left.orphan");
    const claim = `import os, struct, sys, time
pool = sys.argv[1]
time.sleep(0.3)
with open(pool, "r+b") as file:
    header = file.read(4096)
    offset, stride = struct.unpack_from("<QQ", header, 16)
    for slot in (2, 5):
        file.seek(4096 + slot * 32); file.write(struct.pack("<IIQQII", 1, os.getpid(), slot, 0, 1, 0))
        file.seek(offset + slot * stride + 12345); file.write(b"slot %d" % slot)
        file.seek(offset + slot * stride + stride - 7); file.write(b"its end")
print("still here")
sys.exit(9)`;
    // The descriptor's number is not known before: the program finds the keeper's by its name.
    const find = `import glob, os, sys
parent = os.getppid()
pool = next(path for path in glob.glob(f"/proc/{parent}/fd/*") if "tidemark-pool" in os.readlink(path))
sys.argv = ["", pool]
${claim}`;
    const { status, stdout } = run(["python3", "-c", find], {
      before: [...pool, ["orphan", orphan]],
      dieWhen: "started",
    });
    expect({ status, stdout }).toEqual({ status: 9, stdout: "still here\n" });
    const left = statSync(orphan);
    expect(left.mode & 0o777).toBe(0o600);
    expect(left.blocks * 512).toBeLessThan(1 << 20);
    const file = openSync(orphan, "r");
    const reader = new PoolReader(file);
    expect(reader.header()).toMatchObject({ slotCount: 2, periodBytes: 4096 });
    expect(reader.slots().map((slot) => slot.processStartTicks)).toEqual([2, 5]);
    const bytes = readFileSync(orphan);
    for (const [index, slot] of [2, 5].entries()) {
      const { offset, length } = reader.slotRange(index);
      expect(bytes.subarray(offset + 12345, offset + 12351).toString()).toBe(`slot ${slot}`);
      expect(bytes.subarray(offset + length - 7, offset + length).toString()).toBe("its end");
    }
  });

  test("is not left where the recorder did its work", () => {
    const orphan = join(folder, "none.orphan");
    run(["true"], { before: [...pool, ["orphan", orphan]] });
    expect(existsSync(orphan)).toBe(false);
  });
});

async function startReady(command: readonly string[], script: Script = {}) {
  const { arguments: words, report } = hosted(command, script);
  const child = spawn(guard, words, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  let text = "";
  child.stdout?.on("data", (data) => {
    text += data;
  });
  await until(() => text.includes("ready"));
  await until(() => existsSync(report) && readFileSync(report, "utf8").includes("started"));
  return { child, report, output: () => text, program: Number(messageOf(report, "started")[1]) };
}

function messageOf(report: string, verb: string): string[] {
  const line = readFileSync(report, "utf8")
    .split("\n")
    .find((text) => text.startsWith(`${verb}\t`));
  return (line ?? "").split("\t");
}

function ended(child: ChildProcess): Promise<{ code: number | null; signal: string | null }> {
  return new Promise((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function stateOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
}
