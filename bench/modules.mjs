/**
 * The cost of `tidemark.torch.by_module`: a step with it runs alternately with a plain one, A B A B ...; each ratio is of
 * one pair (bench/modules.py, which also compares its figures with torch's own).
 * `npm run bench -- modules [--pairs 8] [--device cuda]`; `--results FILE` takes what modules.py printed on another machine.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { formatRatio, ratioWithInterval } from "./statistics.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const { values: options } = parseArgs({
  options: {
    pairs: { type: "string", default: "8" },
    device: { type: "string", default: "cpu" },
    python: { type: "string" },
    results: { type: "string" },
  },
});
/** What modules.py prints, and on which machine. @returns {Promise<[string, string]>} */
async function measure() {
  const python = options.python ?? (await benchPython());
  const words = [`${here}modules.py`, "--pairs", options.pairs, "--device", options.device];
  const run = spawnSync(python, words, {
    env: {
      ...process.env,
      PYTHONPATH: fileURLToPath(new URL("../python", import.meta.url)),
    },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (run.status !== 0) {
    throw new Error(`modules.py: exit code ${run.status}`);
  }
  return [run.stdout, describeMachine(python)];
}

const [text, machine] =
  options.results === undefined ? await measure() : [readFileSync(options.results, "utf8"), ""];
const { torch, cases } = JSON.parse(text);
const rows = cases.map((/** @type {{case: string, plainMs: number, ratios: number[]}} */ each) => [
  each.case,
  `${each.plainMs.toFixed(1)} ms`,
  formatRatio(ratioWithInterval(each.ratios)),
]);
console.log(rows.map((/** @type {string[]} */ row) => row.join("  ")).join("\n"));
const device = cases[0].device;
writeResults(
  device === "cpu" ? "modules" : "modules-device",
  `## Memory by module${device === "cpu" ? "" : `, on ${device}`}

Time of a training step under \`tidemark.torch.by_module\`, relative to a plain step (geometric mean of pairs, 95 %
interval), torch ${torch}, one thread. ${machine}

${markdownTable(["model", "plain step", "with by_module"], rows)}

\`npm run bench -- modules\` measures it.`,
);
