/** `tidemark memcheck` and `asan` on a real terminal: input, /dev/tty, Ctrl-C, and what a program leaves running. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
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
writeFileSync(join(folder, "asks.py"), ASKS);
writeFileSync(join(folder, "leaves.py"), LEAVES);

const tools = ["asan", ...(environment.tools.valgrind === null ? [] : ["memcheck"])];

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
