/** `tidemark memcheck` and `asan` on a real terminal: input, /dev/tty, Ctrl-C, and what a program leaves running. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { descendantsOf } from "../src/linux/index.js";
import { environment } from "./environment.js";
import { python } from "./recorded_app.js";
import { readText, removeScratch, scratch, tidemark, until } from "./run.js";
import { Terminal } from "./terminal.js";

afterAll(removeScratch);

const folder = scratch();
/** Reads a line, then a password from /dev/tty, then waits for Ctrl-C. */
const ASKS = `import getpass, os, time
print("hello", input("name? "))
open("/dev/tty").close()
print("length", len(getpass.getpass("password? ")))
print("foreground", os.tcgetpgrp(0) == os.getpgrp())
try:
    print("waiting", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("cleaned")
`;
/** Leaves a process behind that has a session of its own. */
const LEAVES = `import subprocess, sys
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
open(sys.argv[1], "w").write("%d\\n" % child.pid)
`;
/** Waits for a file, so that it is still running when it is stopped and continued. */
const WAITS = `import os, sys, time
print("started", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.05)
print("finished", flush=True)
`;
writeFileSync(join(folder, "asks.py"), ASKS);
writeFileSync(join(folder, "waits.py"), WAITS);
writeFileSync(join(folder, "leaves.py"), LEAVES);

const tools = ["asan", ...(environment.tools.valgrind === null ? [] : ["memcheck"])];

/** States (proc_pid_stat(5)) of what a process has started. */
const statesOf = (pid: number) =>
  descendantsOf(pid)
    .slice(1)
    .map((child) => readText(`/proc/${child}/stat`).replace(/^.*\) /s, "")[0]);

describe.each(tools)("tidemark %s on a terminal", (tool) => {
  test("the program reads it, opens /dev/tty, and cleans up after Ctrl-C", async () => {
    const words = [tidemark, tool, "--quiet", "--", python, "asks.py"];
    const terminal = await Terminal.open(words, { cwd: folder });
    try {
      await terminal.shows(/name\?/);
      terminal.type("Ann\r");
      await terminal.shows(/password\?/);
      terminal.type("secret\r");
      await terminal.shows(/waiting/);
      terminal.type("\u0003");
      expect(await terminal.ended()).toBe(130);
      const screen = terminal.screen();
      expect(screen).toMatch(/hello Ann\n/);
      expect(screen).not.toMatch(/secret|Traceback/);
      // The kernel drops output that was not read before Ctrl-C, and its echo may follow the program's answer.
      expect(screen).toMatch(/length 6\nforeground True\nwaiting/);
      expect(screen).toMatch(/cleaned\n/);
      expect(screen).toMatch(/TM-E093 interrupted/);
    } finally {
      terminal.kill();
    }
  });

  test("Ctrl-Z stops it with its program, and fg continues both", async () => {
    const go = join(folder, `go-${tool}`);
    const terminal = await Terminal.open(["bash", "--norc", "--noprofile", "-i"], { cwd: folder });
    try {
      const words = [tidemark, tool, "--quiet", "--", python, "waits.py", go];
      terminal.type(`PS1='ready> '\r`);
      await terminal.shows(/^ready>$/m);
      terminal.type(`clear; ${words.join(" ")}\r`);
      await terminal.shows(/^started/m);
      terminal.type("\u001a");
      await terminal.shows(/Stopped[\s\S]*ready>$/);
      const states = () => statesOf(terminal.pid);
      await until(() => states().length > 1 && states().every((state) => state === "T"));
      terminal.type("fg\r");
      await until(() => !states().includes("T"));
      writeFileSync(go, "");
      await terminal.shows(/^finished[\s\S]*ready>$/m);
      terminal.type('clear; echo "exit code $?"; exit\r');
      expect(await terminal.ended()).toBe(0);
    } finally {
      terminal.kill();
    }
  });

  test("ends what the program leaves running", async () => {
    const file = join(folder, `pid-${tool}`);
    const words = [tidemark, tool, "--quiet", "--", python, "leaves.py", file];
    const terminal = await Terminal.open(words, { cwd: folder });
    try {
      await terminal.ended();
      const pid = readText(file).trim();
      expect(pid).toMatch(/^\d+$/);
      await until(() => !existsSync(`/proc/${pid}`));
    } finally {
      terminal.kill();
    }
  });
});
