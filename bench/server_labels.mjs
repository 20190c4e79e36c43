/**
 * Label values of many pods: `npm run bench -- server_labels [--pods 71000] [--data FOLDER]`
 *
 * A store gets a recording of each pod, 1,000 pods a service, with a few readings and two or three profiles of five stacks.
 * A server then answers what Grafana asks for its variables (Pyroscope's query API). `--data`: a folder that keeps the
 * data for the next run.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fill, serviceOf } from "./fleet_data.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { idle, ms, quantile, rssOf, startServer, stopped } from "./served.mjs";

const { values: options } = parseArgs({
  options: { pods: { type: "string", default: "71000" }, data: { type: "string" } },
});
const pods = Number(options.pods);
const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
const MIB = 2 ** 20;
/** Of each question, after a few that warm up. */
const QUERIES = 200;
const WARM_UP = 5;
const PODS_A_SERVICE = 1000;
const data = options.data ?? mkdtempSync(join(tmpdir(), "tidemark-bench-labels-"));
if (!existsSync(join(data, "meta.duckdb"))) {
  mkdirSync(data, { recursive: true });
  await fill(data, lives(), { endMs: Date.now(), pollMs: 4 * MINUTE_MS });
}
// The evaluation of the alerts reads every process: it takes the time that it takes, and answers wait for it.
const server = await startServer(data, "alerts: {every: 24h}\ntiers: {raw: 1000d}\n");
try {
  await idle(server.child.pid ?? 0);
  const hour = { start: String(Date.now() - 60 * MINUTE_MS), end: String(Date.now()) };
  const month = { start: String(Date.now() - 30 * DAY_MS), end: String(Date.now()) };
  const ofService = { matchers: ['{service_name="service-1"}'] };
  const questions = /** @type {const} */ ([
    ["values of pod, the last hour", "LabelValues", { name: "pod", ...hour }],
    ["values of pod, 30 days", "LabelValues", { name: "pod", ...month }],
    ["values of pod of one service", "LabelValues", { name: "pod", ...month, ...ofService }],
    ["values of service_name", "LabelValues", { name: "service_name", ...month }],
    ["names of labels", "LabelNames", month],
  ]);
  const rows = [];
  for (const [about, method, body] of questions) {
    const times = [];
    let names = 0;
    for (let count = 0; count < WARM_UP + QUERIES; count++) {
      const begun = performance.now();
      names = (await ask(method, body)).length;
      times.push(performance.now() - begun);
    }
    const warm = times.slice(WARM_UP);
    const figures = [times[0] ?? Number.NaN, quantile(warm, 0.5), quantile(warm, 0.99)];
    rows.push([about, names.toLocaleString("en"), ...figures.map(ms)]);
  }
  const table = markdownTable(["query", "answers", "first", "p50", "p99"], rows);
  const most = `The server's RSS was at most ${Math.round(rssOf(server.child.pid ?? 0, "VmHWM") / MIB)} MiB.`;
  console.log(`${table}\n\n${most}`);
  const head = `\`npm run bench -- server_labels\` on ${describeMachine("python3")}. ${pods.toLocaleString("en")} pods, ${PODS_A_SERVICE.toLocaleString("en")} a service, each with its own process. No alerts are evaluated meanwhile; ${QUERIES} queries of each kind after ${WARM_UP} that warm up.`;
  writeResults("server_labels", ["## Labels of many pods", head, table, most].join("\n\n"));
} finally {
  await stopped(server.child);
  if (options.data === undefined) {
    rmSync(data, { recursive: true, force: true });
  }
}

/** @param {string} method @param {object} body @returns {Promise<string[]>} */
async function ask(method, body) {
  const answer = await fetch(`${server.url}/querier.v1.QuerierService/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) {
    throw new Error(`${method}: status ${answer.status}: ${text}`);
  }
  return JSON.parse(text).names ?? [];
}

/** One process for each pod, started in the last minutes. */
function lives() {
  return Array.from({ length: pods }, (_, at) => {
    const service = serviceOf({
      name: `service-${Math.floor(at / PODS_A_SERVICE)}`,
      ...{ instances: PODS_A_SERVICE, days: 1, stacks: 5 },
    });
    const [release] = service.releases;
    if (release === undefined) {
      throw new Error("a service without a version");
    }
    const startMs = Date.now() - 6 * MINUTE_MS - (at % 100) * 1000;
    return { service, release, instance: at % PODS_A_SERVICE, startMs, end: null };
  });
}
