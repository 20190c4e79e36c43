/**
 * Queries over a service of many instances: `npm run bench -- server_fleet [--instances 105] [--days 30] [--stacks 100]`
 *
 * A store gets the recordings of a service with three versions: each instance has a process for each version, with a
 * reading of RSS every 2 minutes and a profile every 4 hours. Pages' queries over all days run first on the data as it was
 * sent, then after the days have moved to the usual tiers, and after a restart. Then each page is opened in Chromium.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fillWithShop } from "./fleet_data.mjs";
import { pagesTable } from "./fleet_pages.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { bytesBelow, daysMoved, ms, quantile, rssOf, startServer, stopped } from "./served.mjs";

const { values: options } = parseArgs({
  options: {
    instances: { type: "string", default: "105" },
    days: { type: "string", default: "30" },
    stacks: { type: "string", default: "100" },
  },
});
const instances = Number(options.instances);
const days = Number(options.days);
const stacks = Number(options.stacks);
const DAY_MS = 86_400_000;
const MIB = 2 ** 20;
const QUERIES = 10;
const data = mkdtempSync(join(tmpdir(), "tidemark-bench-fleet-"));
const endMs = Date.now();
const processes = await fillWithShop(data, { instances, days, stacks, endMs });
let server = await startServer(data, "tiers: {raw: 1000d}\n");
try {
  const columns = [await measured()];
  await stopped(server.child);
  server = await startServer(data, "tiers: {}\n");
  await daysMoved(data);
  columns.push(await measured());
  await stopped(server.child);
  const opened = performance.now();
  server = await startServer(data, "tiers: {}\n");
  await fetch(`${server.url}/readyz`);
  const coldMs = performance.now() - opened;
  const names = Object.keys(columns[0] ?? {});
  const rows = names.map((name) => [name, ...columns.map((column) => column[name] ?? "")]);
  const table = markdownTable(["query", "as sent, p50 / p99", "usual tiers, p50 / p99"], rows);
  const pages = await pagesTable(server.url, {
    service: "shop",
    startMs: endMs - days * DAY_MS,
    endMs,
  });
  const cold = `A restart with these data answers after ${ms(coldMs)}.`;
  console.log(`${table}\n\n${cold}\n\n${pages}`);
  const head = `\`npm run bench -- server_fleet\` on ${describeMachine("python3")}. One service of ${instances} instances and three versions (${processes} processes) over ${days} days, with ${stacks} stacks a profile.`;
  writeResults(
    "server_fleet",
    ["## A service of many instances", head, table, cold, pages].join("\n\n"),
  );
} finally {
  await stopped(server.child);
  rmSync(data, { recursive: true, force: true });
}

/** @param {string} path @param {Record<string, string>} words */
async function ask(path, words) {
  const window = { from: String(endMs - days * DAY_MS), to: String(endMs) };
  const address = `${server.url}/api/v1/${path}?${new URLSearchParams({ ...window, ...words })}`;
  const answer = await fetch(address);
  const text = await answer.text();
  if (!answer.ok) {
    throw new Error(`${path}: status ${answer.status}: ${text}`);
  }
  return text;
}

/** @returns {Promise<Record<string, string>>} */
async function measured() {
  const side = (/** @type {string} */ version) => `{service_name="shop", version="${version}"}`;
  const queries = {
    "list of services": () => ask("services", {}),
    "the service with its instances": () => ask("service", { name: "shop" }),
    "RSS over time": () => ask("series", { service: "shop" }),
    "RSS over time by part": () => ask("series", { service: "shop", name: "ledger", by: "part" }),
    "heat map of instances": () => ask("heatmap", { service: "shop" }),
    "flame graph of all instances": () => ask("profile", { service: "shop", format: "columns" }),
    "flame graph of a part of the days": () =>
      ask("profile", { service: "shop", from: String(Math.round(endMs - 0.63 * days * DAY_MS)) }),
    "diff of two versions": () => ask("diff", { left: side("2"), right: side("3") }),
  };
  /** @type {Record<string, string>} */
  const found = {};
  for (const [name, query] of Object.entries(queries)) {
    await query();
    const times = [];
    for (let count = 0; count < QUERIES; count++) {
      const begun = performance.now();
      await query();
      times.push(performance.now() - begun);
    }
    found[name] = `${ms(quantile(times, 0.5))} / ${ms(quantile(times, 0.99))}`;
  }
  found["the server's highest RSS"] =
    `${Math.round(rssOf(server.child.pid ?? 0, "VmHWM") / MIB)} MiB`;
  const bytes = bytesBelow(join(data, "days")) / instances;
  found["database for an instance and 30 days"] = `${((bytes * 30) / days / 1e6).toFixed(1)} MB`;
  return found;
}
