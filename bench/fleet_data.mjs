/** Data folders of generated fleets: the recordings, and the rows that the server would write of their frames. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { streamName } from "../dist/recording/sender/stream_name.js";
import { StreamReader } from "../dist/recording/stream_reader.js";
import { DemoRecorder, livesOf } from "../dist/server/demo/recordings.js";
import { openStore } from "../dist/store/index.js";

/** @typedef {import("../dist/server/demo/recordings.js").Life} Life */

const MIB = 2 ** 20;
const DAY_MS = 86_400_000;
const LIMITS = { frameBytes: 64 << 20, callBytes: 1 << 30 };
/** Streams of one write. */
const AT_ONCE = 200;

/**
 * A service with three versions over `days`.
 * @param {{name: string, instances: number, days: number, stacks: number}} about
 * @returns {import("../dist/server/demo/services.js").DemoService}
 */
export function serviceOf({ name, instances, days, stacks }) {
  const site = (/** @type {number} */ at) => ({
    stack: [
      /** @type {const} */ (["serve", `/srv/${name}/main.py`, 10]),
      /** @type {const} */ ([`handle_${at % 20}`, `/srv/${name}/api.py`, 10 + (at % 20)]),
      /** @type {const} */ ([`load_${at}`, `/srv/${name}/module_${at % 40}.py`, at]),
    ],
    course: /** @type {const} */ (["settled", "fills", "load"])[at % 3] ?? "settled",
    bytes: (1 + (at % 7)) * (MIB / 4),
    objectBytes: 640,
  });
  const sites = Array.from({ length: stacks }, (_, at) => site(at));
  const deploys = [days + 10, (days * 2) / 3, days / 3];
  return {
    ...{ name, instances, limitBytes: 4096 * MIB, command: ["python", "-m", name] },
    releases: deploys.map((daysAgo, at) => ({ version: String(at + 1), daysAgo, sites })),
  };
}

/**
 * Writes the processes' recordings and their rows into a data folder.
 * @param {string} data @param {readonly Life[]} lives @param {{endMs: number, pollMs: number}} times
 */
export async function fill(data, lives, { endMs, pollMs }) {
  const streams = join(data, "streams");
  mkdirSync(streams, { recursive: true });
  const { store } = await openStore(`duckdb:${data}`);
  let parts = [];
  let bytes = 0;
  for (const [at, life] of lives.entries()) {
    const recording = new DemoRecorder(life, pollMs).begin(endMs);
    const items = new StreamReader("a recording", LIMITS).take(recording);
    const stream = streamName(recording);
    writeFileSync(join(streams, `${stream}.tidemark`), recording);
    parts.push({ stream, items, endOffset: recording.length });
    bytes += recording.length;
    if (parts.length === AT_ONCE || bytes > MIB || at === lives.length - 1) {
      await store.write(parts, 0);
      for (const { stream } of parts) {
        store.forget(stream);
      }
      parts = [];
      bytes = 0;
    }
  }
  await store.close();
}

/**
 * The data of the benchmarks of large fleets: a service of three versions; each instance has a process for each version,
 * with a reading of RSS every 2 minutes and a profile every 4 hours.
 * @param {string} data @param {{instances: number, days: number, stacks: number, endMs: number}} about
 * @returns {Promise<number>} processes
 */
export async function fillWithShop(data, { endMs, days, ...about }) {
  const all = livesOf(serviceOf({ name: "shop", days, ...about }), endMs);
  const lives = all.filter(({ startMs }) => startMs > endMs - days * DAY_MS);
  await fill(data, lives, { endMs, pollMs: 120_000 });
  return lives.length;
}
