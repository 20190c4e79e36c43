/** Processes that are watched for too short a time: the progress output, and the advice on a sufficient length. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectSaidOnce, expectSpeaksClearly } from "../behaviour.js";
import { anyInterpreter } from "../environment.js";
import { execute, readText, removeScratch, scratch, tidemark, until } from "../run.js";

let program: ChildProcess;
beforeAll(async () => {
  program = spawn(anyInterpreter().path, [
    "-c",
    "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.01)",
  ]);
  await once(program.stdout as NodeJS.ReadableStream, "data");
});
afterAll(() => {
  program.kill("SIGKILL");
  removeScratch();
});

const diagnose = (...options: string[]) =>
  execute([tidemark, "diagnose", String(program.pid), "--for", "1s", ...options]);

test("one sentence, once, and the advice states the same length", async () => {
  const { status, stdout } = await diagnose("--no-agent");
  expect(status).toBe(0);
  expectSaidOnce(stdout, /growth cannot be distinguished from start-up/);
  const [, length, unit] =
    /a window of (\d+) (\w+) would settle it/.exec(stdout.replace(/\n +/g, " ")) ?? [];
  expect(stdout.replace(/\n +/g, " ")).toMatch(
    new RegExp(`tidemark diagnose \\d+ --no-agent --for ${length}${unit}\\.`),
  );
});

test("without a terminal one line at the start reports what is happening, and for how long", async () => {
  for (const options of [[], ["--no-agent"], ["--json"]]) {
    const { stderr } = await diagnose(...options);
    expect(stderr, options.join()).toMatch(
      /^tidemark: watching process \d+( from outside)? for 1\.0 s; Ctrl-C ends it early\n$/,
    );
  }
  expect((await diagnose("--quiet")).stderr).toBe("");
});

test("the attach to a refused process is not announced", async () => {
  const { status, stderr } = await execute([tidemark, "diagnose", "4194303", "--for", "1s"]);
  expect([status, stderr.split("\n").length], stderr).toEqual([4, 2]);
});

test("an interrupt ends the window: a verdict on the data so far, or one line", async () => {
  for (const afterMs of [300, 2_500]) {
    const { status, stdout, stderr } = await execute(
      [tidemark, "diagnose", String(program.pid), "--for", "5min"],
      {
        started: (child) => {
          setTimeout(() => child.kill("SIGINT"), afterMs);
        },
      },
    );
    expectSpeaksClearly(stdout + stderr);
    if (status === 0) {
      expect(stdout).toContain("Verdict");
    } else {
      expect(stderr, `${status} ${stdout}`).toMatch(/^$|TM-E041 interrupted/);
    }
  }
});

test.each([["attach"], ["diagnose"], ["diagnose --no-agent"]])(
  "%s: a program that ends before the window is over",
  async (line) => {
    const [command = "", ...options] = line.split(" ");
    const short = spawn(anyInterpreter().path, [
      "-c",
      "import select, sys\nprint('up', flush=True)\nwhile not select.select([sys.stdin], [], [], 0.01)[0]: pass",
    ]);
    await once(short.stdout as NodeJS.ReadableStream, "data");
    const words = [command, String(short.pid), "--for", "30s", ...options];
    const isWatched = (said: string) =>
      said.includes(` process ${short.pid}`) &&
      (options.includes("--no-agent") || readText(`/proc/${short.pid}/maps`).includes("tidemark"));
    const { status, stdout, stderr } = await execute([tidemark, ...words], {
      cwd: scratch(),
      started: async (_child, files) => {
        await until(() => isWatched(readText(files.stderr)));
        setTimeout(() => short.stdin?.end(), 2_000);
      },
    });
    expect(status, stderr).toBe(0);
    const said = command === "attach" ? stderr : stdout.replace(/\n +/g, " ");
    expectSaidOnce(
      said,
      command === "attach"
        ? /the program ended after \d\.\d s, before the 30\.0 s of --for had passed\n/
        : /The program ended before the 30\.0 s of --for had passed\./,
    );
    expectSpeaksClearly(stdout + stderr);
  },
);
