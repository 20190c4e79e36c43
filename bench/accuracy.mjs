/**
 * Estimates against exact truth: programs that know what they allocated, at several sampling periods.
 * `npm run bench -- accuracy [--runs 5] [--sites 300]`
 *
 * Of every site: does the figure's 95 % interval (src/model/base/interval.ts) hold the truth? Sites with fewer
 * than ten expected samples, at the period that was in force at the end, are reported separately.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { interval95, unseenUpToBytes } from "../dist/model/base/interval.js";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { mean, median } from "./statistics.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const tidemark = join(here, "../bin/tidemark");
const { values: options } = parseArgs({
  options: { runs: { type: "string", default: "5" }, sites: { type: "string", default: "300" } },
});
const python = await benchPython();
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
const periods = [16 << 10, 64 << 10, 512 << 10];

/** @param {string[]} command */
function output(command) {
  const result = spawnSync(command[0], command.slice(1), {
    encoding: "utf8",
    cwd: scratch,
    maxBuffer: 1 << 30,
  });
  if (result.status !== 0) {
    throw new Error(`${command.join(" ")}: ${result.status}\n${result.stderr}`);
  }
  return result.stdout;
}

const rows = [];
for (const period of periods) {
  /** @type {Record<"live" | "allocated", {held: number, all: number, heldLarge: number, large: number}>} */
  const counts = {
    live: { held: 0, all: 0, heldLarge: 0, large: 0 },
    allocated: { held: 0, all: 0, heldLarge: 0, large: 0 },
  };
  const topErrors = [];
  const totalErrors = [];
  for (let run = 0; run < Number(options.runs); run++) {
    const recording = join(scratch, "r.tidemark");
    const command = [
      python,
      join(here, "workloads/known_sites.py"),
      options.sites ?? "",
      String(run),
    ];
    const truth = JSON.parse(
      output([
        tidemark,
        "run",
        "--quiet",
        "-f",
        "--period",
        String(period),
        "-o",
        recording,
        "--",
        ...command,
      ]),
    );
    const summary = JSON.parse(
      output([tidemark, "summary", recording, "--json", "--top", "100000"]),
    );
    const inForce = summary.agent.periodBytes;
    /** @type {Map<string, {live: number, liveVariance: number, allocated: number, allocatedVariance: number}>} */
    const estimates = new Map();
    for (const site of summary.sites) {
      const frame = site.stack.find((/** @type {{function: string}} */ f) =>
        /^site_\d+$/.test(f.function),
      );
      if (!frame) {
        continue;
      }
      const sum = estimates.get(frame.function) ?? {
        live: 0,
        liveVariance: 0,
        allocated: 0,
        allocatedVariance: 0,
      };
      sum.live += site.liveBytes;
      sum.liveVariance += site.standardErrorBytes ** 2;
      sum.allocated += site.allocatedBytes;
      sum.allocatedVariance += site.standardErrorAllocatedBytes ** 2;
      estimates.set(frame.function, sum);
    }
    let estimated = 0;
    let exact = 0;
    const ranked = Object.entries(truth).sort(([, a], [, b]) => b.liveBytes - a.liveBytes);
    for (const [rank, [name, site]] of ranked.entries()) {
      const found = estimates.get(name) ?? {
        live: 0,
        liveVariance: 0,
        allocated: 0,
        allocatedVariance: 0,
      };
      estimated += found.live;
      exact += site.liveBytes;
      if (rank < 10) {
        topErrors.push(Math.abs(found.live - site.liveBytes) / site.liveBytes);
      }
      for (const [count, value, variance, true_] of /** @type {const} */ ([
        [counts.live, found.live, found.liveVariance, site.liveBytes],
        [counts.allocated, found.allocated, found.allocatedVariance, site.allocatedBytes],
      ])) {
        const { low, high } =
          value > 0
            ? interval95(value, Math.sqrt(variance))
            : { low: 0, high: unseenUpToBytes(inForce) };
        const held = low - 1e-9 <= true_ && true_ <= high + 1e-9;
        count.all++;
        if (held) {
          count.held++;
        }
        if (true_ >= 10 * inForce) {
          count.large++;
          if (held) {
            count.heldLarge++;
          }
        }
      }
    }
    totalErrors.push(Math.abs(estimated - exact) / exact);
  }
  const share = (/** @type {number} */ part, /** @type {number} */ whole) =>
    whole ? `${((100 * part) / whole).toFixed(1)} % of ${whole}` : "-";
  rows.push([
    `${period / 1024} KiB`,
    share(counts.live.heldLarge, counts.live.large),
    share(counts.allocated.heldLarge, counts.allocated.large),
    share(counts.live.held, counts.live.all),
    `${(100 * median(topErrors)).toFixed(1)} %`,
    `${(100 * Math.max(...topErrors)).toFixed(1)} %`,
    `${(100 * mean(totalErrors)).toFixed(2)} %`,
  ]);
}
rmSync(scratch, { recursive: true, force: true });

const markdown = `## Accuracy

\`npm run bench -- accuracy --runs ${options.runs} --sites ${options.sites}\` on ${describeMachine(python)}.
Truth: a program that knows what each of its functions allocated and kept.

${markdownTable(
  [
    "period",
    "live: interval holds the truth, sites of ten periods or more",
    "allocated: the same",
    "live: all sites",
    "error of the ten largest, median",
    "largest",
    "error of the total",
  ],
  rows,
)}
`;
console.log(markdown);
writeResults("accuracy", markdown);
