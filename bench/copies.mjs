/**
 * The cost of counting copies (`tidemark run --copies`): two programs that do nothing but copy run alternately with
 * and without it, A B A B ...; each ratio is of one pair, of the best round of each program.
 * `npm run bench -- copies [--pairs 8]`
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { formatRatio, median, ratioWithInterval } from "./statistics.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const tidemark = join(here, "../bin/tidemark");
const { values: options } = parseArgs({
  options: {
    pairs: { type: "string", default: "8" },
    python: { type: "string" },
  },
});
const python = options.python ?? (await benchPython());
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
const programs = [
  ["300 bytes", "copies_small.py"],
  ["4 MiB", "copies_large.py"],
];

/** Seconds of a copy. @param {string} file @param {string[]} words */
function once(file, words) {
  const run = spawnSync(
    tidemark,
    [
      ...["run", "--quiet", "-f", "-o", join(scratch, "run.tidemark"), ...words],
      ...["--", python, join(here, "workloads", file)],
    ],
    { stdio: ["ignore", "pipe", "inherit"], encoding: "utf8" },
  );
  if (run.status !== 0) {
    throw new Error(`${file}: exit code ${run.status}`);
  }
  return Number(run.stdout);
}

try {
  const rows = programs.map(([name, file]) => {
    const pairs = Array.from({ length: Number(options.pairs) }, () => ({
      plain: once(file, []),
      counted: once(file, ["--copies"]),
    }));
    const ratios = pairs.map(({ plain, counted }) => counted / plain);
    const plainNs = median(pairs.map(({ plain }) => plain)) * 1e9;
    const countedNs = median(pairs.map(({ counted }) => counted)) * 1e9;
    const row = [name, `${plainNs.toFixed(1)} ns`, `${countedNs.toFixed(1)} ns`];
    console.log(name, ...row.slice(1), formatRatio(ratioWithInterval(ratios)));
    return [...row, formatRatio(ratioWithInterval(ratios))];
  });
  writeResults(
    "copies",
    `## Counting copies

Time of a copy under \`tidemark run --copies\`, compared with \`tidemark run\` (medians of the best rounds; geometric mean
of the ratios of pairs, 95 % interval). ${describeMachine(python)}

${markdownTable(["a copy of", "not counted", "counted", "ratio"], rows)}

A copy of 300 bytes is not sampled, one of 4 MiB always is. \`npm run bench -- copies\` measures it.`,
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
