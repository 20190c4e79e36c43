/**
 * A server's ingestion and query speed: `npm run bench -- server [--processes 200] [--stacks 2000] [--seconds 60]`
 *
 * `--history 30`: another server gets the profiles of one process for that many days, `--history-stacks` (200) stacks every
 * ten minutes; it restarts and moves the days to coarser tiers. The disk before and after, and the flame graph of all days,
 * are measured.
 *
 * The full size: `--processes 1000 --stacks 2000 --seconds 180 --history 30 --history-stacks 500`.
 *
 * `--alone`: no client queries while profiles arrive, so that the server's CPU time is that of the profiles.
 *
 * `--processes` senders push a profile of `--stacks` stacks a minute (Pyroscope's push API), evenly spread over
 * `--seconds`, while one client queries. Then only queries run: services, a flame graph, a diff, label values. One
 * server and one client process share the machine.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { Location, Function as PprofFunction, Profile, StringTable } from "pprof-format";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import {
  bytesBelow,
  cpuOf,
  daysMoved,
  ms,
  quantile,
  rssOf,
  startServer,
  stopped,
} from "./served.mjs";

const { values: options } = parseArgs({
  options: {
    processes: { type: "string", default: "200" },
    stacks: { type: "string", default: "2000" },
    seconds: { type: "string", default: "60" },
    history: { type: "string", default: "0" },
    "history-stacks": { type: "string", default: "200" },
    alone: { type: "boolean", default: false },
  },
});
const processes = Number(options.processes);
let stacks = Number(options.stacks);
const seconds = Number(options.seconds);
const QUERIES = 20;
/** Times of queries while profiles arrive, in ms. @type {number[]} */
const asked = [];
/** The server's CPU time when each process had sent its first profile, in s. */
let cpuAfterFirstS = Number.NaN;
/** Profiles without a time. @type {Map<string, string>} */
const encoded = new Map();
const folder = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
const { url, child } = await startServer(folder);
try {
  const begunMs = Date.now();
  const cpuBefore = cpuOf(/** @type {number} */ (child.pid));
  const taken = await ingest();
  await pause(3000);
  const cpuAfter = cpuOf(/** @type {number} */ (child.pid));
  const rssMiB = Math.round(rssOf(/** @type {number} */ (child.pid)) / 2 ** 20);
  const window = `from=${begunMs - 60_000}&to=${Date.now()}`;
  const shop = encodeURIComponent('{service_name="service-1"}');
  const api = `${url}/api/v1`;
  const timed = {
    "list of services": () => fetch(`${api}/services?${window}`),
    "stacks of one service": () => fetch(`${api}/profile?service=service-1&${window}`),
    "diff of two services": () =>
      fetch(`${api}/diff?left=${shop}&right=${shop.replace("-1", "-2")}&${window}`),
    "values of the label pod": () =>
      fetch(`${url}/querier.v1.QuerierService/LabelValues`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          name: "pod",
          start: String(begunMs - 60_000),
          end: String(Date.now()),
        }),
      }),
  };
  const queries = [];
  for (const [name, ask] of Object.entries(timed)) {
    const times = [];
    for (let count = 0; count < QUERIES; count++) {
      const begun = performance.now();
      const response = await ask();
      await response.arrayBuffer();
      if (!response.ok) {
        throw new Error(`${name}: status ${response.status}`);
      }
      times.push(performance.now() - begun);
    }
    queries.push([name, ms(quantile(times, 0.5)), ms(quantile(times, 0.99))]);
  }
  const rows = taken.length * stacks;
  const later = taken.length - processes;
  const disk = bytesBelow(folder);
  const ingestTable = markdownTable(
    [
      "profiles",
      "rows",
      "acknowledged, p50",
      "p99",
      "while they came: services, p99",
      "the server's CPU a profile",
      "a process's first",
      "a later one",
      "disk a profile",
      "RSS",
    ],
    [
      [
        String(taken.length),
        rows.toLocaleString("en"),
        ms(quantile(taken, 0.5)),
        ms(quantile(taken, 0.99)),
        options.alone ? "none asked" : `${ms(quantile(asked, 0.99))} of ${asked.length}`,
        ms(((cpuAfter - cpuBefore) * 1000) / taken.length),
        ms(((cpuAfterFirstS - cpuBefore) * 1000) / Math.min(processes, taken.length)),
        later > 0 ? ms(((cpuAfter - cpuAfterFirstS) * 1000) / later) : "none was sent",
        `${(disk / taken.length / 1024).toFixed(0)} KiB`,
        `${rssMiB} MiB`,
      ],
    ],
  );
  const queryTable = markdownTable(["query", "p50", "p99"], queries);
  const peakMiB = Math.round(rssOf(/** @type {number} */ (child.pid), "VmHWM") / 2 ** 20);
  const rate = Math.round(rows / seconds).toLocaleString("en");
  const rateLine = `${rate} rows of samples a second were sent; the server's RSS was at most ${peakMiB} MiB.`;
  const sent = stacks;
  const historyTable = Number(options.history) > 0 ? await history() : "";
  console.log(`${ingestTable}\n\n${rateLine}\n\n${queryTable}\n\n${historyTable}`);
  writeResults(
    "server",
    [
      "## The server",
      `\`npm run bench -- server\` on ${describeMachine("python3")}. ${processes} senders push a profile of ${sent} stacks a minute, for ${seconds} s, from the same machine.`,
      ingestTable,
      rateLine,
      queryTable,
      historyTable,
    ].join("\n\n"),
  );
} finally {
  await stopped(child);
  rmSync(folder, { recursive: true, force: true });
}

/** One process over many days: disk and query before and after its days have moved. */
async function history() {
  const days = Number(options.history);
  stacks = Number(options["history-stacks"]);
  const data = mkdtempSync(join(tmpdir(), "tidemark-bench-history-"));
  const endMs = Date.now() - 600_000;
  const count = days * 144;
  let server = await startServer(data, "tiers: {raw: 1000d}\n");
  const ask = async () => {
    const times = [];
    for (let at = 0; at < QUERIES; at++) {
      const begun = performance.now();
      const path = `/api/v1/profile?service=service-0&from=${endMs - days * 86_400_000}&to=${Date.now()}`;
      await (await fetch(`${server.url}${path}`)).arrayBuffer();
      times.push(performance.now() - begun);
    }
    return times;
  };
  try {
    for (let at = 0; at < count; at++) {
      const timeMs = endMs - (count - 1 - at) * 600_000;
      const response = await fetch(`${server.url}/push.v1.PusherService/Push`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: pushed(0, at, timeMs),
      });
      if (!response.ok) {
        throw new Error(`push: status ${response.status}`);
      }
    }
    await pause(3000);
    const measured = async (/** @type {string} */ name) => {
      const times = await ask();
      await stopped(server.child);
      const monthly = ((bytesBelow(join(data, "days")) * 30) / days / 1e6).toFixed(1);
      return [name, `${monthly} MB`, ms(quantile(times, 0.5)), ms(quantile(times, 0.99))];
    };
    const before = await measured("as sent");
    server = await startServer(data, "tiers: {}\n");
    await daysMoved(data);
    const after = await measured("raw for 2 days, then means of 10 minutes and an hour");
    return `One process that sends ${stacks} stacks every 10 minutes for ${days} days:\n\n${markdownTable(
      ["tiers", "database for a process and month", "flame graph of all days, p50", "p99"],
      [before, after],
    )}`;
  } finally {
    await stopped(server.child);
    rmSync(data, { recursive: true, force: true });
  }
}

/** @returns {Promise<number[]>} times until each acknowledgement, in ms */
async function ingest() {
  const total = Math.round((processes * seconds) / 60);
  const endMs = Date.now() + seconds * 1000;
  const times = /** @type {number[]} */ ([]);
  const querying = (async () => {
    while (!options.alone && Date.now() < endMs) {
      const begun = performance.now();
      await (await fetch(`${url}/api/v1/services`)).arrayBuffer();
      asked.push(performance.now() - begun);
      await pause(500);
    }
  })();
  const sending = [];
  for (let at = 0; at < total; at++) {
    const body = pushed(at % processes, Math.floor(at / processes));
    await pause(Math.max(0, endMs - seconds * 1000 + (at / total) * seconds * 1000 - Date.now()));
    if (at === processes) {
      cpuAfterFirstS = cpuOf(/** @type {number} */ (child.pid));
    }
    const begun = performance.now();
    const send = async () => {
      const response = await fetch(`${url}/push.v1.PusherService/Push`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      await response.arrayBuffer();
      if (!response.ok) {
        throw new Error(`push: status ${response.status}`);
      }
      times.push(performance.now() - begun);
    };
    sending.push(send());
  }
  await Promise.all(sending);
  if (total <= processes) {
    cpuAfterFirstS = cpuOf(/** @type {number} */ (child.pid));
  }
  await querying;
  return times;
}

/**
 * A request of the push API. A profile without a time is dated by the server when it arrives, so it is encoded once for all
 * senders: the client then takes little of the CPU that the server needs. @param {number} process @param {number} round @returns {string}
 */
function pushed(process, round, timeMs = 0) {
  const variant = (round + process) % 97;
  const name = `${stacks} ${variant}`;
  const rawProfile = (timeMs === 0 ? encoded.get(name) : null) ?? encodedProfile(variant, timeMs);
  if (timeMs === 0) {
    encoded.set(name, rawProfile);
  }
  const labels = { service_name: `service-${process % 20}`, version: "1", pod: `pod-${process}` };
  return JSON.stringify({
    series: [
      {
        labels: Object.entries(labels).map(([name, value]) => ({ name, value })),
        samples: [{ ID: `${process}-${round}`, rawProfile }],
      },
    ],
  });
}

/** @param {number} variant of its values @param {number} timeMs @returns {string} */
function encodedProfile(variant, timeMs) {
  const strings = new StringTable();
  const text = (/** @type {string} */ value) => strings.dedup(value);
  const types = ["inuse_space", "inuse_objects", "alloc_space"];
  const functions = 500;
  const profile = new Profile({
    sampleType: types.map((type) => ({ type: text(type), unit: text("bytes") })),
    sample: Array.from({ length: stacks }, (_, at) => ({
      locationId: Array.from(
        { length: 20 },
        (_, depth) => 1 + ((at * (depth + 1) + depth) % functions),
      ),
      value: [1000 * (1 + ((at + variant) % 97)), 1 + (at % 7), 512],
      label: [],
    })),
    location: Array.from(
      { length: functions },
      (_, at) => new Location({ id: at + 1, line: [{ functionId: at + 1, line: at + 1 }] }),
    ),
    function: Array.from(
      { length: functions },
      (_, at) =>
        new PprofFunction({
          id: at + 1,
          name: text(`function_${at}`),
          filename: text(`module_${at % 40}.py`),
        }),
    ),
    stringTable: strings,
    timeNanos: BigInt(timeMs) * 1_000_000n,
    durationNanos: 60_000_000_000n,
  });
  return gzipSync(profile.encode()).toString("base64");
}
