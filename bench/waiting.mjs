/**
 * The accuracy and cost of a recording of a program that mostly waits.
 * `npm run bench -- waiting [--seconds 30] [--pairs 3]`
 *
 * The agent may use a share of the program's CPU time, which is small here (agent/src/period/control.c). Plain and
 * recorded runs take place side by side, because they wait most of the time.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { interval95 } from "../dist/model/base/interval.js";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { mean } from "./statistics.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const tidemark = join(here, "../bin/tidemark");
const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "30" },
    pairs: { type: "string", default: "3" },
  },
});
const python = await benchPython();
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));

/** @param {string[]} command @returns {Promise<{keptBytes: number, cpuSeconds: number}>} */
function measure(command) {
  return new Promise((resolve, reject) => {
    const child = spawn(command[0] ?? "", command.slice(1), {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    child.stdout.on("data", (part) => {
      text += part;
    });
    child.on("error", reject);
    child.on("close", (status) =>
      status === 0 ? resolve(JSON.parse(text)) : reject(new Error(`${command}: ${status}`)),
    );
  });
}

/** @param {number} bytes @param {number} run */
async function pair(bytes, run) {
  const program = [python, join(here, "workloads/waiting_service.py"), `${bytes}`];
  const path = join(scratch, `${bytes}-${run}.json`);
  const words = ["run", "--quiet", "-f", "-o", `${path}.tidemark`, "--json", path, "--"];
  const [plain, recorded] = await Promise.all([
    measure([...program, options.seconds]),
    measure([tidemark, ...words, ...program, options.seconds]),
  ]);
  const summary = JSON.parse(readFileSync(path, "utf8"));
  let estimate = 0;
  let variance = 0;
  for (const site of summary.sites) {
    const own = site.stack.some((/** @type {{function: string}} */ f) => f.function === "remember");
    if (!own) {
      continue;
    }
    estimate += site.liveBytes;
    variance += site.standardErrorBytes ** 2;
  }
  const { low, high } = interval95(estimate, Math.sqrt(variance));
  return {
    keptBytes: recorded.keptBytes,
    samplesPerMb: estimate ** 2 / variance / (recorded.keptBytes / 1e6),
    error: Math.abs(estimate - recorded.keptBytes) / recorded.keptBytes,
    held: low <= recorded.keptBytes && recorded.keptBytes <= high,
    agentShare: summary.agent.cpuMs / 1000 / Number(options.seconds),
    extraShare: (recorded.cpuSeconds - plain.cpuSeconds) / Number(options.seconds),
    plainShare: plain.cpuSeconds / Number(options.seconds),
  };
}

const percent = (/** @type {number} */ share) => `${(100 * share).toFixed(2)} %`;
const rows = [];
for (const bytes of [10_000, 50_000]) {
  const pairs = [];
  for (let run = 0; run < Number(options.pairs); run++) {
    pairs.push(await pair(bytes, run));
  }
  const average = (/** @type {(one: (typeof pairs)[0]) => number} */ figure) =>
    mean(pairs.map(figure));
  rows.push([
    `${(average((one) => one.keptBytes) / 1e6 / Number(options.seconds)).toFixed(2)} MB`,
    average((one) => one.samplesPerMb).toFixed(1),
    percent(average((one) => one.error)),
    `${pairs.filter((one) => one.held).length} of ${pairs.length}`,
    percent(average((one) => one.plainShare)),
    percent(average((one) => one.extraShare)),
    percent(average((one) => one.agentShare)),
  ]);
}
rmSync(scratch, { recursive: true, force: true });

const markdown = `## Programs that mostly wait

\`npm run bench -- waiting --seconds ${options.seconds} --pairs ${options.pairs}\` on ${describeMachine(python)}.

${markdownTable(
  [
    "leaked a second",
    "samples a leaked MB",
    "error of the leak",
    "its 95 % interval holds",
    "CPU of the program alone, of a core",
    "more under Tidemark",
    "of which the agent's slow path",
  ],
  rows,
)}
`;
console.log(markdown);
writeResults("waiting", markdown);
