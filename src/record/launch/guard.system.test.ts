/** tidemark-guard itself, with a recorder that does nothing: the program's surroundings, its end, signals. */

import { spawn, spawnSync } from "node:child_process";
import { openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { monotonicMs } from "../../linux/this_process/clock.js";
import { present } from "../../model/base/present.js";
import {
  bySomeShell,
  ended,
  folder,
  guard,
  HANGS_AFTER_MS,
  hosted,
  makeFolder,
  person,
  removeFolder,
  run,
  startReady,
  stateOf,
  surroundings,
  until,
} from "./fixtures/hosted.js";

beforeAll(makeFolder);
afterAll(removeFolder);

describe("the program's environment is the same as without the guard", () => {
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

  test("a pipe's reader sees its end as soon as the program closes it", async () => {
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
    const fromMs = monotonicMs();
    const { status, signal, messages } = run(["sh", "-c", `exit ${code}`]);
    expect({ status, signal }).toEqual({ status: code, signal: null });
    const exited = messages.find(([verb]) => verb === "exited");
    expect(exited?.[1]).toBe(String(code << 8));
    expect(Number(exited?.[5])).toBeGreaterThanOrEqual(fromMs);
    expect(Number(exited?.[5])).toBeLessThanOrEqual(monotonicMs());
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
while len(seen) < int(sys.argv[1]): time.sleep(0.05)
deadline = time.monotonic() + 1 # for one too many
while time.monotonic() < deadline: time.sleep(0.05)
print(",".join(seen))`;

  test.each(["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const)(
    "%s to the guard alone is passed on",
    async (name) => {
      const { child, output } = await startReady(["python3", "-c", counter, "1"]);
      process.kill(present(child.pid), name);
      expect(await ended(child)).toEqual({ code: 0, signal: null });
      expect(output()).toBe(`ready\n${name}\n`);
    },
  );

  test("a signal to the whole group arrives once", async () => {
    const { child, output } = await startReady(["python3", "-c", counter, "1"]);
    process.kill(-present(child.pid), "SIGTERM");
    expect(await ended(child)).toEqual({ code: 0, signal: null });
    expect(output()).toBe("ready\nSIGTERM\n");
  });

  test("twice, in both ways: the second is not mistaken for the first", async () => {
    const { child, output } = await startReady(["python3", "-c", counter, "2"]);
    process.kill(-present(child.pid), "SIGUSR1");
    await new Promise((resolve) => setTimeout(resolve, 300));
    process.kill(present(child.pid), "SIGUSR1");
    await ended(child);
    expect(output()).toBe("ready\nSIGUSR1,SIGUSR1\n");
  });

  test("a program that is stopped and continued runs to its end", async () => {
    const { child, output, program } = await startReady(["python3", "-c", counter, "0"]);
    process.kill(program, "SIGSTOP");
    await until(() => stateOf(present(child.pid)) === "T");
    process.kill(present(child.pid), "SIGCONT");
    expect(await ended(child)).toEqual({ code: 0, signal: null });
    expect(output()).toBe("ready\n\n");
  });
});

describe("a terminal with job control", () => {
  const ticker = `import os, time
print("foreground", os.tcgetpgrp(0) == os.getpgrp())
for number in range(600):
    print("tick", number, flush=True); time.sleep(0.1)`;

  test("Ctrl-Z, jobs, fg and Ctrl-C work as without the guard", () => {
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
