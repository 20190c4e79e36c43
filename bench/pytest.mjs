/**
 * What `pytest --tidemark` costs a suite: 20 tests with and without limits.
 *
 *     --rounds N   runs of each kind (default 5); the median of their CPU time is printed
 *
 * Four suites: tests that do next to nothing (the cost per test), that parse JSON (many small allocations), that
 * work on blocks of bytes, and that keep 40,000 objects. Each runs without --tidemark, with it, and with every
 * allocation recorded.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { capture, SetupError } from "../scripts/command.mjs";
import { readEnvironment } from "../scripts/environment.mjs";
import { root } from "../scripts/setup.mjs";

const suites = {
  empty: "pass",
  json: 'import json\n    for n in range(200): json.loads(json.dumps({"items": list(range(100)), "name": "x" * n}))',
  blocks: "for n in range(200): bytes(1 << 20)",
  objects: "rows = [object() for _ in range(40_000)]",
};
const TESTS = 20;
/** Runs pytest and prints its CPU time. */
const TIMED = `import resource, subprocess, sys
status = subprocess.call([sys.executable, "-m", "pytest", *sys.argv[1:]])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
sys.exit(status)`;

const { values } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
const python = readEnvironment().packagesPython;
if (python === null) {
  throw new SetupError("the environment with pytest is missing: node scripts/environment.mjs");
}
const folder = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
try {
  process.stdout.write("suite     plain s  --tidemark s  ms a test  --tidemark-period 1 s\n");
  for (const [name, body] of Object.entries(suites)) {
    const place = join(folder, name);
    mkdirSync(place);
    const tests = Array.from(
      { length: TESTS },
      (_, n) => `@pytest.mark.limit_memory("1 GiB")\ndef test_${n}():\n    ${body}\n`,
    );
    writeFileSync(join(place, "test_suite.py"), `import pytest\n${tests.join("\n")}`);
    const plain = await median(place, "-W", "ignore");
    const sampled = await median(place, "--tidemark");
    const exact = await median(place, "--tidemark", "--tidemark-period", "1");
    const perTest = ((sampled - plain) * 1000) / TESTS;
    process.stdout.write(
      `${name.padEnd(8)} ${plain.toFixed(2).padStart(8)} ${sampled.toFixed(2).padStart(13)} ${perTest.toFixed(1).padStart(10)} ${exact.toFixed(2).padStart(21)}\n`,
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** CPU seconds of pytest, which other programs on the machine affect less than wall time.
 * @param {string} place @param {string[]} words */
async function median(place, ...words) {
  const times = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    const { status, output } = await capture(
      python ?? "",
      ["-c", TIMED, "-q", "-p", "no:cacheprovider", "-p", "tidemark.pytest_plugin", ...words],
      { cwd: place, env: { ...process.env, PYTHONPATH: join(root, "python") } },
    );
    if (status !== 0) {
      throw new SetupError(output);
    }
    times.push(Number(output.trim().split("\n").at(-1)));
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}
