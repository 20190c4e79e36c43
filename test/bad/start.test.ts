/** Programs that cannot be started, or that no library can be preloaded into. */

import { chmodSync, chownSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import { compare, expectSaidOnce, expectSpeaksClearly } from "../behaviour.js";
import { anyInterpreter, environment, isRoot } from "../environment.js";
import { execute, record, removeScratch, scratch } from "../run.js";

const cc = present(environment.tools.cc);
let folder: string;

beforeAll(() => {
  folder = scratch();
  writeFileSync(
    join(folder, "hello.c"),
    `#include <stdio.h>
     #include <stdlib.h>
     int main(int count, char **words) {
         char *kept = malloc(8 << 20);
         for (int i = 1; i < count; i++) printf("%s\\n", words[i]);
         fputs("to stderr\\n", stderr);
         return kept ? 3 : 4;
     }`,
  );
});
afterAll(removeScratch);

async function build(name: string, ...options: string[]): Promise<string> {
  const program = join(folder, name);
  const { status, stderr } = await execute([
    cc,
    ...options,
    join(folder, "hello.c"),
    "-o",
    program,
  ]);
  expect(status, stderr).toBe(0);
  return program;
}

describe("cannot be started: one line, the shell's exit code, no recording", () => {
  test.each([
    ["no such program", ["no-such-program-anywhere"], 127, /no-such-program-anywhere/],
    ["no such path", ["/no/such/program", "argument"], 127, /\/no\/such\/program/],
    ["a directory", ["/tmp"], 126, /\/tmp/],
    ["an empty name", [""], 127, /./],
  ])("%s", async (_name, command, status, line) => {
    await expectNotStarted(command, status, line);
  });

  test("a file that is not executable", async () => {
    const program = join(folder, "text");
    writeFileSync(program, "print('hello')\n");
    await expectNotStarted([program], 126, /text/);
  });

  test("a script whose interpreter is missing", async () => {
    const script = join(folder, "script");
    writeFileSync(script, "#!/no/such/interpreter\n", { mode: 0o755 });
    await expectNotStarted([script], 127, /script/);
  });

  test("no command at all, an unknown option, an invalid period", async () => {
    for (const words of [
      ["run"],
      ["run", "--"],
      ["run", "--frobnicate", "--", "true"],
      ["run", "--period", "many", "--", "true"],
    ]) {
      const { status, stdout, stderr } = await execute([
        join(import.meta.dirname, "../../bin/tidemark"),
        ...words,
      ]);
      expect(status, stderr).toBe(2);
      expect(stdout).toBe("");
      expect(stderr.trimEnd().split("\n"), stderr).toHaveLength(1);
      expectSpeaksClearly(stderr);
    }
  });
});

describe("runs unchanged without the agent, and a line explains why", () => {
  test("a program that is not Python: its native memory is recorded", async () => {
    await expectNative([await build("hello"), "one", "two words"]);
  });

  test("a program that is started by the loader's own name is recorded", async () => {
    await expectNative(["/lib64/ld-linux-x86-64.so.2", await build("loaded"), "one", "two words"]);
  });

  async function expectNative(command: string[]): Promise<void> {
    const { recorded, ours } = await compare(command);
    expect(recorded.status).toBe(3);
    const profile = recorded.open().profileAt("end");
    expect(profile.sites.liveBytes.reduce((sum, bytes) => sum + bytes, 0)).toBeGreaterThanOrEqual(
      8 << 20,
    );
    expect(ours).not.toMatch(/static|musl|32-bit|setuid/);
    expect((await recorded.summary()).target.python).toBe("");
  }

  test("a file that is not a program: handled as in a shell", async () => {
    const program = join(folder, "garbage");
    writeFileSync(program, "echo from a shell; exit 3\n", { mode: 0o755 });
    expect((await compare([program])).recorded).toMatchObject({
      status: 3,
      stdout: "from a shell\n",
    });
    const damaged = join(folder, "damaged");
    writeFileSync(damaged, Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 255, 254, 0, 10]), {
      mode: 0o755,
    });
    await compare([damaged]);
  });

  test("a static binary", async () => {
    await expectUnseen([await build("static", "-static"), "word"], /statically linked/);
  });

  test("a script that is run by a static binary", async () => {
    const interpreter = await build("static-interpreter", "-static");
    const script = join(folder, "static-script");
    writeFileSync(script, `#!${interpreter}\nanything\n`, { mode: 0o755 });
    await expectUnseen([script, "word"], /statically linked/);
  });

  test("a musl program, recognized by the loader in its header", async () => {
    // This machine's own loader under musl's name: the program runs, and its header says musl.
    const loader = join(folder, "lib", "ld-musl-x86_64.so.1");
    mkdirSync(join(folder, "lib"), { recursive: true });
    symlinkSync("/lib64/ld-linux-x86-64.so.2", loader);
    await expectUnseen(
      [await build("musl", `-Wl,--dynamic-linker=${loader}`), "word"],
      /built for musl/,
    );
  });

  test("a 32-bit program", async (context) => {
    const source = join(folder, "small.c");
    // Without a C library, because a 64-bit system rarely has the 32-bit one: write(1, "32\n", 3); exit(3).
    writeFileSync(
      source,
      `static int call(int number, int a, int b, int c) {
           int result;
           __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
           return result;
       }
       void _start(void) { call(4, 1, (int)"32\\n", 3); call(1, 3, 0, 0); }`,
    );
    const program = join(folder, "small");
    const options = [
      "-m32",
      "-static",
      "-nostdlib",
      "-ffreestanding",
      "-fno-pie",
      "-fno-stack-protector",
    ];
    if ((await execute([cc, ...options, source, "-o", program])).status !== 0) {
      context.skip("this compiler makes no 32-bit programs");
    }
    if ((await execute([program])).status !== 3) {
      context.skip("this kernel runs no 32-bit programs");
    }
    await expectUnseen([program], /32-bit program/);
  });

  test.skipIf(!isRoot)("a setuid program", async () => {
    const program = await build("setuid");
    chownSync(program, 65534, 65534);
    chmodSync(program, 0o4755);
    await expectUnseen([program, "word"], /set-user-id/);
  });

  test("a static child: the parent is recorded, the child's absence is not an error", async () => {
    const child = await build("static-child", "-static");
    const script = `import subprocess, sys\nkept = bytes(16 << 20)\nsys.exit(subprocess.call([${JSON.stringify(child)}, "word"]))`;
    const { recorded } = await compare([anyInterpreter().path, "-c", script]);
    expect(recorded.status).toBe(3);
    expect((await recorded.summary("--at", "peak")).target.python).toBe(anyInterpreter().version);
  });
});

async function expectNotStarted(command: string[], status: number, line: RegExp): Promise<void> {
  const outcome = await record(command);
  expect(outcome.status, outcome.stderr).toBe(status);
  expect(outcome.stdout).toBe("");
  expect(outcome.stderr.trimEnd().split("\n"), outcome.stderr).toHaveLength(1);
  expect(outcome.stderr).toMatch(/^tidemark: /);
  expect(outcome.stderr).toMatch(line);
  expectSpeaksClearly(outcome.stderr);
  expect(existsSync(outcome.path)).toBe(false);
}

async function expectUnseen(command: string[], reason: RegExp): Promise<void> {
  const { recorded, ours } = await compare(command);
  expect(recorded.status).toBe(3);
  expectSaidOnce(ours, reason);
  const summary = await recorded.summary();
  expect(summary.limits.join("\n")).toMatch(reason);
  expect(summary.sites).toEqual([]);
  expect(summary.processes).toMatchObject([{ profiled: false }]);
}
