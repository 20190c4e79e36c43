/** A program under Valgrind, where no allocation could be recorded: `attach`, `ps` and `doctor` report it. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PsJson } from "../../src/model/documents/documents.js";
import { environment } from "../environment.js";
import { python } from "../recorded_app.js";
import { execute, readText, removeScratch, scratch, tidemark, until } from "../run.js";

afterAll(removeScratch);

describe.skipIf(environment.tools.valgrind === null)("a program under Valgrind", () => {
  let program: ChildProcess;
  let pid = 0;

  beforeAll(async () => {
    const file = join(scratch(), "pid");
    const code = `import os, sys, time
open(sys.argv[1], "w").write("%d\\n" % os.getpid())
time.sleep(600)`;
    const words = ["-q", "--log-file=/dev/null", python, "-c", code, file];
    program = spawn("valgrind", words, { stdio: "ignore" });
    await until(() => existsSync(file) && readText(file).endsWith("\n"));
    pid = Number(readText(file));
  });
  afterAll(() => void program.kill("SIGKILL"));

  test("attach refuses it with one line", async () => {
    const outcome = await execute([tidemark, "attach", String(pid), "--for", "1s"]);
    expect(outcome.status).not.toBe(0);
    expect(outcome.stderr).toMatch(
      /^tidemark: TM-E\d+ [^\n]*it runs under Valgrind, which replaces malloc[^\n]*\n$/,
    );
  });

  test("ps and doctor name the reason", async () => {
    const { stdout } = await execute([tidemark, "ps", "--json"]);
    const row = (JSON.parse(stdout) as PsJson).processes.find((process) => process.pid === pid);
    expect(row?.attach).toMatchObject({ ok: false, reason: expect.stringMatching(/Valgrind/) });
    const doctor = await execute([tidemark, "doctor", "--pid", String(pid)]);
    expect(doctor.stdout).toMatch(/allocator +it runs under Valgrind, which replaces malloc/);
  });
});
