/** Compares the ledger of core files with the ledger of the process that left them. */

import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Ajv } from "ajv";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readLedger } from "../src/ledger/index.js";
import { present } from "../src/model/base/present.js";
import type { CoreLedgerJson } from "../src/model/documents/ledger_document.js";
import type { Ledger, LedgerPartName } from "../src/model/profile/ledger.js";
import { environment } from "./environment.js";
import { startPython } from "./python_program.js";
import { execute, repository, tidemark } from "./run.js";

/** Some of every part: objects, free blocks, used and free chunks, a separate mapping, shared memory,
 * and mostly unused stacks. */
const PROGRAM = `
import mmap
kept = {i: (f"name {i}", float(i)) for i in range(100_000)}
chunks = [bytearray(b"z" * (700 + i)) for i in range(10_000)]
del chunks[::2]
large = bytearray(b"y" * (20 << 20))
own = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
own.write(b"q" * (6 << 20))
shared = mmap.mmap(-1, 4 << 20)
shared.write(b"s" * (4 << 20))
threads = [threading.Thread(target=threading.Event().wait, daemon=True) for _ in range(5)]
for thread in threads: thread.start()
say({})
`;
const MIB = 2 ** 20;
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "tidemark-ledger-core-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const has = (name: string) =>
  (process.env.PATH ?? "").split(":").some((place) => {
    try {
      return statSync(join(place, name)).isFile();
    } catch {
      return false;
    }
  });
/** Whether the kernel writes cores into the process's folder, and does not pipe them to a system program. */
const kernelWrites =
  has("prlimit") && /^core[^/|]*\n$/.test(readFileSync("/proc/sys/kernel/core_pattern", "utf8"));

async function snapshot(path: string): Promise<CoreLedgerJson> {
  const { status, stdout, stderr } = await execute([tidemark, "ledger", path, "--json"]);
  expect([status, stderr]).toEqual([0, ""]);
  const found = JSON.parse(stdout) as CoreLedgerJson;
  const schema = JSON.parse(readFileSync(join(repository, "docs/json/coreledger-1.json"), "utf8"));
  const check = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true }).compile(schema);
  expect(check(found), JSON.stringify(check.errors)).toBe(true);
  expect(found.parts.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(found.bytes);
  expect(found.bytes + found.zeroBytes).toBe(found.heldBytes);
  return found;
}

const own = environment.interpreters.filter(({ chroot, freeThreaded }) => !chroot && !freeThreaded);

describe.each([
  ["gcore", has("gcore")],
  ["the kernel", kernelWrites],
] as const)("written by %s", (writer, possible) => {
  describe.runIf(possible).each([own.at(0), own.at(-1)].map((one) => [one?.version, one] as const))(
    "Python %s",
    (_version, interpreter) => {
      let path: string;
      let live: Ledger;
      let pid: number;

      beforeAll(async () => {
        const waiting = await startPython(present(interpreter), PROGRAM);
        pid = waiting.pid;
        live = readLedger(pid, "full");
        path = join(folder, `core.${pid}`);
        if (writer === "gcore") {
          await run("gcore", ["-o", join(folder, "core"), String(pid)]);
          await waiting.stop();
        } else {
          // The core is written to the program's working folder, which is this test's.
          await run("prlimit", [`--pid=${pid}`, "--core=unlimited:"]);
          const before = new Set(readdirSync("."));
          process.kill(pid, "SIGABRT");
          await waiting.ended;
          const written = present(readdirSync(".").find((name) => !before.has(name)));
          await run("mv", [written, path]);
        }
      });

      test("has the parts that the process had", async () => {
        const core = await snapshot(path);
        const bytesOf = (parts: readonly { part: string; bytes: number }[], name: LedgerPartName) =>
          parts.find(({ part }) => part === name)?.bytes ?? Number.NaN;
        for (const part of ["python.used", "malloc.used", "malloc.free", "anon.other", "shm"]) {
          const name = part as LedgerPartName;
          const difference = bytesOf(core.parts, name) - bytesOf(live.parts, name);
          // Pages of zeroes within chunks cannot be distinguished from pages that were never touched.
          expect(Math.abs(difference), part).toBeLessThan(
            Math.max(MIB, 0.05 * bytesOf(live.parts, name)),
          );
        }
        expect(bytesOf(core.parts, "libraries")).toBeLessThan(bytesOf(live.parts, "libraries"));
        expect(bytesOf(core.parts, "file.mapped")).toBeLessThan(MIB);
        expect(bytesOf(core.parts, "stacks")).toBeGreaterThan(5 * 4096);
        expect(bytesOf(core.parts, "stacks")).toBeLessThan(MIB);
        expect(core.unexplainedBytes).toBeLessThan(0.02 * core.bytes);
        expect(core.pymalloc).toEqual(live.python);
        expect(core.malloc).toMatchObject({
          arenas: live.malloc?.arenas,
          mmappedChunks: live.malloc?.mmappedChunks,
          freeBytes: live.malloc?.freeBytes,
        });
        expect(core.target).toMatchObject({ pid, python: interpreter?.version });
        expect([core.truncatedBytes, core.limits]).toEqual([0, []]);
      });

      test("truncated anywhere, it reports what is missing", async () => {
        const { size } = statSync(path);
        for (const length of [size - 65_536, size * 0.8, size * 0.4, 200_000, 5000, 63, 0]) {
          truncateSync(path, Math.floor(length));
          const outcome = await execute([tidemark, "ledger", path]);
          if (outcome.status === 0) {
            expect(outcome.stdout).toMatch(/cut off: .* missing/);
            expect((await snapshot(path)).truncatedBytes).toBeGreaterThan(0);
          } else {
            expect(outcome.status).toBe(2);
            expect(outcome.stderr).toMatch(/^tidemark: TM-E00[57] [^\n]*\n$/);
          }
        }
      });
    },
  );
});

test("options for live processes are refused for a file", async () => {
  for (const option of ["--children", "--watch", "--cheap"]) {
    const { status, stderr } = await execute([tidemark, "ledger", "package.json", option]);
    expect([status, stderr]).toEqual([2, expect.stringMatching(/^tidemark: TM-E002 .*\n$/)]);
  }
});
