/**
 * The cost of counting copies (`tidemark run --copies`): programs that copy much or little run alternately with and
 * without it, A B A B ...; each ratio of CPU time is of one pair.
 * `npm run bench -- copies [--pairs 6]`
 *
 * "small copies" calls memcpy and memmove most often, for a few hundred bytes each: the cost of a copy that is not
 * sampled. "large copies" takes a sample at nearly every call.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { formatRatio, ratioWithInterval } from "./statistics.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const tidemark = join(here, "../bin/tidemark");
const { values: options } = parseArgs({
  options: {
    pairs: { type: "string", default: "6" },
    python: { type: "string" },
  },
});
const python = options.python ?? (await benchPython());
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
const workloads = [
  ["small copies", "copies_small.py"],
  ["large copies", "copies_large.py"],
  ["numpy_arrays", "numpy_arrays.py"],
  ["json_service", "json_service.py"],
  ["log_analysis", "log_analysis.py"],
];

/** CPU seconds of the program. @param {string} file @param {string[]} words @param {string} name */
function once(file, words, name) {
  const out = join(scratch, "cpu.json");
  const path = join(scratch, `${name}.tidemark`);
  const program = [python, join(here, "measure.py"), out, python, join(here, "workloads", file)];
  const run = spawnSync(
    tidemark,
    ["run", "--quiet", "-f", "-o", path, ...words, "--", ...program],
    {
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  if (run.status !== 0) {
    throw new Error(`${file}: exit code ${run.status}`);
  }
  return JSON.parse(readFileSync(out, "utf8")).cpuSeconds;
}

try {
  const rows = [];
  for (const [name, file] of workloads) {
    const ratios = [];
    for (let pair = 0; pair < Number(options.pairs); pair++) {
      const plain = once(file, [], "plain");
      ratios.push(once(file, ["--copies"], "copies") / plain);
    }
    const summary = spawnSync(tidemark, ["summary", join(scratch, "copies.tidemark"), "--json"], {
      encoding: "utf8",
      maxBuffer: 2 ** 28,
    });
    const { copied } = JSON.parse(summary.stdout);
    const gib = ((copied?.bytes ?? 0) / 2 ** 30).toFixed(2);
    rows.push([name, `${gib} GiB`, formatRatio(ratioWithInterval(ratios))]);
    console.log(rows.at(-1)?.join("  "));
  }
  writeResults(
    "copies",
    `## Counting copies

CPU time of programs under \`tidemark run --copies\`, relative to \`tidemark run\` (geometric mean of pairs, 95 % interval).
${describeMachine(python)}

${markdownTable(["program", "copied", "CPU time"], rows)}

"small copies" calls memcpy for 300 bytes each time, "large copies" for 4 MiB. \`npm run bench -- copies\` measures it.`,
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
