/**
 * The start of a server with much data: `npm run bench -- server_start [--gigabytes 10] [--data FOLDER] [--runs 5]`
 *
 * A data folder gets the fleet of the benchmark server_fleet, moves to the usual tiers, and is then enlarged by copies of its
 * rows and recordings under other names. Measured is the time from starting the command to the first answer, with the files in
 * the page cache and after they were dropped from it. `--data`: a folder that keeps the data for the next run.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { enlarge } from "./fleet_copies.mjs";
import { fillWithShop } from "./fleet_data.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { bytesBelow, daysMoved, ms, rssOf, startServer, stopped } from "./served.mjs";
import { median } from "./statistics.mjs";

const { values: options } = parseArgs({
  options: {
    gigabytes: { type: "string", default: "10" },
    data: { type: "string" },
    runs: { type: "string", default: "5" },
  },
});
const bytes = Number(options.gigabytes) * 1e9;
const MIB = 2 ** 20;
/** Nothing is removed. */
const CONFIG = "max_disk: 1TB\ntiers: {}\n";
const QUESTIONS = { "/healthz": "/healthz", "list of services": "/api/v1/services" };
const data = options.data ?? mkdtempSync(join(tmpdir(), "tidemark-bench-start-"));
try {
  if (!existsSync(join(data, "meta.duckdb"))) {
    mkdirSync(data, { recursive: true });
    await fillWithShop(data, { instances: 105, days: 30, stacks: 100, endMs: Date.now() });
    const server = await startServer(data, CONFIG);
    await daysMoved(data);
    await stopped(server.child);
  }
  await enlarge(data, bytes);
  const rows = [];
  for (const cache of ["warm", "dropped"]) {
    for (const [name, path] of Object.entries(QUESTIONS)) {
      const runs = [];
      for (let run = 0; run < Number(options.runs); run++) {
        if (cache === "dropped") {
          dropFromCache();
        }
        runs.push(await started(path));
      }
      const times = runs.map(({ tookMs }) => tookMs);
      const most = Math.max(...runs.map(({ rssBytes }) => rssBytes)) / MIB;
      rows.push([
        name,
        cache,
        ms(median(times)),
        ms(Math.max(...times)),
        `${Math.round(most)} MiB`,
      ]);
    }
  }
  const table = markdownTable(["first answer", "page cache", "median", "maximum", "RSS"], rows);
  console.log(table);
  const recordings = readdirSync(join(data, "streams")).length.toLocaleString("en");
  const head = `\`npm run bench -- server_start\` on ${describeMachine("python3")}. A data folder of ${(bytesBelow(data) / 1e9).toFixed(1)} GB, ${recordings} recordings, from the start of the command to the first answer.`;
  writeResults("server_start", ["## The start of a server", head, table].join("\n\n"));
} finally {
  if (options.data === undefined) {
    rmSync(data, { recursive: true, force: true });
  }
}

/** @param {string} path of the question */
async function started(path) {
  const begun = performance.now();
  const { url, child } = await startServer(data, CONFIG);
  try {
    const answer = await fetch(`${url}${path}`);
    await answer.arrayBuffer();
    if (!answer.ok) {
      throw new Error(`${path}: status ${answer.status}`);
    }
    return { tookMs: performance.now() - begun, rssBytes: rssOf(child.pid ?? 0, "VmHWM") };
  } finally {
    await stopped(child);
  }
}

/** As after a restart of the machine, but only these files: the program's own stay in the page cache. */
function dropFromCache() {
  for (const name of readdirSync(data, { recursive: true, encoding: "utf8" })) {
    const path = join(data, name);
    if (statSync(path).isFile()) {
      // posix_fadvise(POSIX_FADV_DONTNEED) after fdatasync
      execFileSync("dd", [
        `of=${path}`,
        "oflag=nocache",
        "conv=notrunc,fdatasync",
        "count=0",
        "status=none",
      ]);
    }
  }
}
