/**
 * Request latency of a FastAPI service under load from a second process, plain and under Tidemark in
 * turn: `npm run bench -- latency [--pairs 12] [--requests 4000]`.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { formatRatio, median, ratioWithInterval } from "./statistics.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const { values: options } = parseArgs({
  options: {
    pairs: { type: "string", default: "12" },
    requests: { type: "string", default: "4000" },
  },
});
const python = await benchPython();
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  server.close();
  await once(server, "close");
  return port;
}

/** @param {string[]} before words before the interpreter @returns {Promise<{p50Ms: number, p99Ms: number}>} */
async function serveAndLoad(before) {
  const port = await freePort();
  const command = [...before, python, join(here, "workloads/fastapi_service.py"), String(port)];
  const server = spawn(command[0], command.slice(1), { stdio: "ignore", cwd: scratch });
  const load = spawnSync(python, [join(here, "load.py"), String(port), options.requests ?? ""], {
    encoding: "utf8",
  });
  server.kill("SIGTERM");
  await once(server, "exit");
  if (load.status !== 0) throw new Error(`load failed: ${load.stderr}`);
  return JSON.parse(load.stdout);
}

const tidemark = [
  join(here, "../bin/tidemark"),
  "run",
  "--quiet",
  "-f",
  "-o",
  join(scratch, "r.tidemark"),
  "--",
];
/** @type {{p50: number[], p99: number[], plain50: number[], plain99: number[]}} */
const kept = { p50: [], p99: [], plain50: [], plain99: [] };
for (let pair = 0; pair < Number(options.pairs); pair++) {
  const first = pair % 2 === 0;
  const one = await serveAndLoad(first ? [] : tidemark);
  const two = await serveAndLoad(first ? tidemark : []);
  const [plain, watched] = first ? [one, two] : [two, one];
  kept.p50.push(watched.p50Ms / plain.p50Ms);
  kept.p99.push(watched.p99Ms / plain.p99Ms);
  kept.plain50.push(plain.p50Ms);
  kept.plain99.push(plain.p99Ms);
}
rmSync(scratch, { recursive: true, force: true });

const markdown = `## Request latency

\`npm run bench -- latency --pairs ${options.pairs} --requests ${options.requests}\` on ${describeMachine(python)}.
FastAPI and uvicorn, one connection in a closed loop; plain and under \`tidemark run\` in turn.

${markdownTable(
  ["quantile", "plain (median)", "ratio (95 %)"],
  [
    ["p50", `${median(kept.plain50).toFixed(2)} ms`, formatRatio(ratioWithInterval(kept.p50))],
    ["p99", `${median(kept.plain99).toFixed(2)} ms`, formatRatio(ratioWithInterval(kept.p99))],
  ],
)}
`;
console.log(markdown);
writeResults("latency", markdown);
