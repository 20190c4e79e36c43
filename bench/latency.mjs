/**
 * Request latency of a FastAPI service under load from a second process, alternately plain and under each
 * tool: `npm run bench -- latency [--pairs 12] [--peer-pairs 2] [--requests 4000] [--tools "tidemark;memray"]`.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { freePort } from "../dist/model/base/free_port.fixture.js";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { formatRatio, median, ratioWithInterval } from "./statistics.mjs";
import { toolNames, tools } from "./tools.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const { values: options } = parseArgs({
  options: {
    pairs: { type: "string", default: "12" },
    "peer-pairs": { type: "string", default: "2" },
    requests: { type: "string", default: "4000" },
    tools: { type: "string" },
  },
});
const chosenTools = toolNames(options.tools);
/** A service that a peer cannot run never answers. */
const LOAD_TIMEOUT_MS = 120_000;
const python = await benchPython();
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));

/**
 * @typedef {{p50Ms: number, p99Ms: number}} Latency
 * @param {string | null} tool null: plain
 * @returns {Promise<Latency | null>} null: the service did not serve
 */
async function serveAndLoad(tool) {
  const port = await freePort();
  const script = join(here, "workloads/fastapi_service.py");
  const inner = [python, script];
  const before = tool === null ? inner : tools[tool]({ python, script, inner, scratch });
  // In its own process group: some tools run the service as a child and do not forward signals.
  const server = spawn(before[0], [...before.slice(1), String(port)], {
    stdio: "ignore",
    cwd: scratch,
    detached: true,
  });
  const ended = once(server, "exit");
  const load = spawnSync(python, [join(here, "load.py"), String(port), options.requests ?? ""], {
    encoding: "utf8",
    timeout: LOAD_TIMEOUT_MS,
  });
  stopGroup(server.pid, "SIGTERM");
  const stubborn = setTimeout(stopGroup, 10_000, server.pid, "SIGKILL");
  await ended;
  clearTimeout(stubborn);
  stopGroup(server.pid, "SIGKILL"); // members of the group that outlived its leader
  return load.status === 0 ? JSON.parse(load.stdout) : null;
}

/** @param {number | undefined} pid @param {NodeJS.Signals} signal */
function stopGroup(pid, signal) {
  try {
    if (pid !== undefined) {
      process.kill(-pid, signal);
    }
  } catch {
    // It has already ended.
  }
}

/** @param {string} tool @param {number} pairs @returns {Promise<string[]>} its row */
async function measure(tool, pairs) {
  /** @type {{p50: number[], p99: number[], plain50: number[], plain99: number[]}} */
  const kept = { p50: [], p99: [], plain50: [], plain99: [] };
  for (let pair = 0; pair < pairs; pair++) {
    const first = pair % 2 === 0;
    const one = await serveAndLoad(first ? null : tool);
    const two = await serveAndLoad(first ? tool : null);
    const [plain, watched] = first ? [one, two] : [two, one];
    if (plain === null) {
      throw new Error("the service did not serve, without any tool");
    }
    if (watched === null) {
      return [tool, "failed", "", "", "", String(pairs)];
    }
    kept.p50.push(watched.p50Ms / plain.p50Ms);
    kept.p99.push(watched.p99Ms / plain.p99Ms);
    kept.plain50.push(plain.p50Ms);
    kept.plain99.push(plain.p99Ms);
  }
  const row = [
    tool,
    `${median(kept.plain50).toFixed(2)} ms`,
    formatRatio(ratioWithInterval(kept.p50)),
    `${median(kept.plain99).toFixed(2)} ms`,
    formatRatio(ratioWithInterval(kept.p99)),
    String(pairs),
  ];
  console.error(row.join("  "));
  return row;
}

const rows = [];
for (const tool of chosenTools) {
  const own = tool.startsWith("tidemark");
  rows.push(await measure(tool, Number(own ? options.pairs : options["peer-pairs"])));
}
rmSync(scratch, { recursive: true, force: true });

const markdown = `## Request latency

\`npm run bench -- latency --pairs ${options.pairs} --peer-pairs ${options["peer-pairs"]} --requests ${options.requests}\` on
${describeMachine(python)}.
FastAPI and uvicorn, one connection in a closed loop; runs with and without the tool alternate. Ratios with their 95 %
interval.

${markdownTable(["tool", "p50, plain", "ratio", "p99, plain", "ratio", "pairs"], rows)}
`;
console.log(markdown);
if (!options.tools) {
  writeResults("latency", markdown);
}
