/**
 * CPython's own tests, plain and under `tidemark run`: every test must have the same outcome. `npm test` runs three
 * modules on one interpreter, `npm run test:long` all of them on each interpreter that comes with its tests.
 *
 * Some of these tests fail now and then on a busy machine, with or without Tidemark, and the process pools of 3.13.0 may
 * deadlock while they shut down (github.com/python/cpython/issues/125451): a test whose outcomes differ runs again on both
 * sides, and counts only if it differs each time.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, inject, test } from "vitest";
import { anyInterpreter, environment, type Interpreter } from "../environment.js";
import { removeScratch, scratch, tidemark } from "../run.js";

afterAll(removeScratch);

/** The first three are the sample. */
const modules = [
  "test_gc",
  "test_capi",
  "test_threading",
  "test_signal",
  "test_subprocess",
  "test_multiprocessing_fork",
  "test_multiprocessing_spawn",
  "test_multiprocessing_forkserver",
  "test_concurrent_futures",
  "test_asyncio",
  "test_ctypes",
  "test_mmap",
  "test_io",
  "test_faulthandler",
  "test_embed",
];
const count = inject("counts").cpythonModules;
const isLong = count >= modules.length;
const TRIES = 3;
const MODULE_TIMEOUT_MS = 1_200_000;

/** They query the allocator's name, which CPython knows only while it is not hooked (agent/README.md, Limits). */
const asksForAllocator =
  /test_pymem_getallocatorsname|PyMemPymallocAllocator.*getallocatorsname|test_debugmallocstats/;

/** The folder of its tests; null: it comes without tests. */
function testsOf({ path, version }: Interpreter): string | null {
  const minor = version.split(".").slice(0, 2).join(".");
  const folder = join(path, "../../lib", `python${minor}`, "test");
  return existsSync(join(folder, "test_gc.py")) ? folder : null;
}

const own = environment.interpreters.filter(({ chroot, freeThreaded }) => !chroot && !freeThreaded);
const withTests = own.filter((interpreter) => testsOf(interpreter) !== null);
const newest = withTests.find(({ path }) => path === anyInterpreter().path) ?? withTests.at(-1);
const tested = isLong ? withTests : withTests.filter((interpreter) => interpreter === newest);

/** Outcome by test: "passed", "failure", "error" or "skipped"; "" is the module itself. */
async function outcomes(
  before: readonly string[],
  python: string,
  module: string,
  only: readonly string[] = [],
): Promise<Map<string, string>> {
  const folder = scratch();
  const file = join(folder, "outcomes.xml");
  const [program = "", ...args] = [
    ...before,
    ...[python, "-m", "test", "--junit-xml", file, "--timeout", "600"],
    ...only.flatMap((name) => ["--match", name]),
    module,
  ];
  const child = spawn(program, args, { cwd: folder, stdio: "ignore", detached: true });
  const stop = setTimeout(() => process.kill(-(child.pid ?? 0), "SIGKILL"), MODULE_TIMEOUT_MS);
  const status = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? signal));
  });
  clearTimeout(stop);
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const found = new Map<string, string>(text === "" ? [["", `no outcomes, exit ${status}`]] : []);
  for (const [, attributes = "", body] of text.matchAll(
    /<testcase ([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs,
  )) {
    const name = /\bname="([^"]*)"/.exec(attributes)?.[1] ?? "";
    const outcome = /<(failure|error|skipped)\b/.exec(body ?? "")?.[1] ?? "passed";
    if ((found.get(name) ?? "passed") === "passed") {
      found.set(name, outcome);
    }
  }
  return found;
}

/** "NAME: passed, but failure under Tidemark" */
function differences(
  plain: Map<string, string>,
  recorded: Map<string, string>,
): Map<string, string> {
  const names = [...new Set([...plain.keys(), ...recorded.keys()])];
  return new Map(
    names
      .filter((name) => plain.get(name) !== recorded.get(name) && !asksForAllocator.test(name))
      .map((name) => [
        name,
        `${name}: ${plain.get(name) ?? "not run"}, but ${recorded.get(name) ?? "not run"} under Tidemark`,
      ]),
  );
}

describe
  .skipIf(tested.length === 0)
  .each(tested.map((interpreter) => [interpreter.version, interpreter] as const))(
  "Python %s",
  // Most of these tests wait, so that several modules fit on two cores.
  { concurrent: isLong },
  (_version, interpreter) => {
    const folder = testsOf(interpreter) ?? "";
    const present = modules
      .slice(0, count)
      .filter((name) => existsSync(join(folder, name)) || existsSync(join(folder, `${name}.py`)));

    test.each(present)(
      "%s: every test ends as without Tidemark",
      async (module) => {
        const python = interpreter.path;
        const under = () => {
          const recording = join(scratch(), "r.tidemark");
          return [tidemark, "run", "--quiet", "-o", recording, "--"];
        };
        const plain = await outcomes([], python, module);
        expect(plain.size, "tests").toBeGreaterThan(1);
        let different = differences(plain, await outcomes(under(), python, module));
        for (let attempt = 1; attempt < TRIES && different.size > 0; attempt++) {
          const only = different.has("") ? [] : [...different.keys()];
          const again = await outcomes([], python, module, only);
          const same = differences(again, await outcomes(under(), python, module, only));
          different = new Map([...different].filter(([name]) => same.has(name)));
        }
        expect([...different.values()]).toEqual([]);
      },
      4 * TRIES * MODULE_TIMEOUT_MS,
    );
  },
);
