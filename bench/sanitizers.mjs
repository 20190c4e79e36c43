/**
 * How much slower a program runs under `tidemark memcheck` and `tidemark asan`: `npm run bench -- sanitizers [--runs 3]`
 *
 * Two programs: one calls Python functions in a loop, the other works in C functions that Python calls (sort, json, zlib). Each
 * measures the CPU time of its own work, without the start of the interpreter and the reading of the findings.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { median } from "./statistics.mjs";

const tidemark = fileURLToPath(new URL("../bin/tidemark", import.meta.url));
const { values: options } = parseArgs({ options: { runs: { type: "string", default: "3" } } });
const programs = {
  "calls of Python functions": `def length(number): return len(str(number))
def work():
    for number in range(500): length(number)`,
  "work in C functions": `import json, zlib
def work():
    for _ in range(1):
        rows = sorted(range(5000), key=str)
        zlib.compress(json.dumps(rows).encode())`,
};
const tools = { alone: [], memcheck: ["memcheck"], asan: ["asan", "--no-leaks"] };
const folder = mkdtempSync(join(tmpdir(), "tidemark-bench-"));

/** CPU milliseconds of the program's work. @param {string[]} words @param {string} program */
function measure(words, program) {
  const command = ["python3", program];
  const [file = "", ...rest] =
    words.length === 0 ? command : [tidemark, ...words, "--", ...command];
  const { stdout, stderr, status } = spawnSync(file, rest, { encoding: "utf8" });
  const milliseconds = Number(stdout);
  if (status !== 0 || !(milliseconds > 0)) {
    throw new Error(stderr);
  }
  return milliseconds;
}

try {
  const rows = Object.entries(programs).map(([name, code], index) => {
    const program = join(folder, `program${index}.py`);
    const timing = "import time\nbegin = time.process_time()\nwork()\n";
    writeFileSync(program, `${code}\n${timing}print((time.process_time() - begin) * 1000)\n`);
    const times = Object.values(tools).map((words) =>
      median(Array.from({ length: Number(options.runs) }, () => measure(words, program))),
    );
    const [alone = 1, ...others] = times;
    return [
      name,
      `${alone.toFixed(1)} ms`,
      ...others.map((time) => `${(time / alone).toFixed(1)} times`),
    ];
  });
  const table = markdownTable(["program", "CPU time alone", "memcheck", "asan"], rows);
  console.log(table);
  writeResults(
    "sanitizers",
    [
      "## `tidemark memcheck` and `asan`",
      `\`npm run bench -- sanitizers\`, CPU time of the program's work, median of ${options.runs} runs.`,
      `${describeMachine("python3")}.`,
      table,
    ].join("\n\n"),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
