/**
 * The CPU time of `tidemark lint` for the Python source below some folders; without folders, for the standard library:
 * `npm run bench -- lint [--runs 3] [FOLDER...]`
 *
 * One process checks all files, on one thread. CPU seconds are those of the whole command, including startup, as the
 * kernel counts them for children. The budget is 3 s for 100,000 lines on one core.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { describeMachine } from "./machine.mjs";
import { costOf } from "./process_cost.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { median } from "./statistics.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: options, positionals } = parseArgs({
  options: { runs: { type: "string", default: "3" } },
  allowPositionals: true,
});
const budgetSeconds = 3;

function standardLibrary() {
  const code = "import sysconfig; print(sysconfig.get_paths()['stdlib'])";
  return execFileSync("python3", ["-c", code], { encoding: "utf8" }).trim();
}

function childrenMs() {
  return costOf(process.pid)?.childrenMs ?? 0;
}

/** @param {readonly string[]} folders */
function measure(folders) {
  const before = childrenMs();
  const words = ["lint", "--json", "--quiet", ...folders];
  // On one core, so the threads of the garbage collector and the compiler count too.
  const { stdout, stderr, status } = spawnSync(
    "taskset",
    ["-c", "0", join(root, "bin/tidemark"), ...words],
    { encoding: "utf8", maxBuffer: 2 ** 30 },
  );
  if (status === null || status > 1) {
    throw new Error(stderr);
  }
  const { lines, files, findings } = JSON.parse(stdout);
  return { seconds: (childrenMs() - before) / 1000, lines, files, findings: findings.length };
}

const folders = positionals.length > 0 ? positionals : [standardLibrary()];
const runs = Array.from({ length: Number(options.runs) }, () => measure(folders));
const { lines, files, findings } = runs[0] ?? { lines: 0, files: 0, findings: 0 };
const seconds = median(runs.map((run) => run.seconds));
const table = markdownTable(
  ["files", "lines", "findings", "CPU", "CPU for 100,000 lines", "budget"],
  [
    [
      files.toLocaleString("en"),
      lines.toLocaleString("en"),
      findings.toLocaleString("en"),
      `${seconds.toFixed(1)} s`,
      `${((seconds / lines) * 100_000).toFixed(2)} s`,
      `${budgetSeconds} s`,
    ],
  ],
);
console.log(table);
if (positionals.length === 0) {
  writeResults(
    "lint",
    [
      "## `tidemark lint`",
      `\`npm run bench -- lint\`, the standard library, median of ${runs.length} runs on one core.`,
      `${describeMachine("python3")}.`,
      table,
    ].join("\n\n"),
  );
}
