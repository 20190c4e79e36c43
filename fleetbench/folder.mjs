/**
 * Reads and writes folders of labelled fleets; docs/fleetbench.md describes the format.
 *
 *   DIR/FLEET/fleet.json     processes: service, version, instance, start, end, limit
 *             readings.csv   process,timeMs,rssBytes,requestsPerSecond
 *             sites.csv      process,timeMs,liveBytes,stack          where the agent ran
 *             expect.json    the label of each service
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SetupError } from "../scripts/command.mjs";

/**
 * @typedef {{times: number[], values: number[]}} Readings
 * @typedef {{function: string, file: string, line: number, kind: "python" | "native"}} Frame
 * @typedef {{line: Frame, path: string[], type: string, bound?: number}} Holder
 * @typedef {{process: string, service: string, version: string, instance: string, startedMs: number,
 *   endedMs: number | null, limitBytes: number, rss: Readings, requests: Readings | null,
 *   sites: {stack: Frame[], live: Readings}[], kind: null, holders: Holder[]}} Process
 * @typedef {{leak: boolean, cause: string, version?: string | null, startMs?: number, bytesPerDay?: number,
 *   limitBytes?: number, instances?: string[], culprit?: {file: string, functions: string[]},
 *   innocentDeploy?: boolean}} Label
 * @typedef {{name: string, endMs: number, processes: Process[], labels: Record<string, Label>}} Fleet
 */

/** @param {string} folder @returns {string[]} the names of its fleets */
export function fleetsIn(folder) {
  if (!existsSync(folder)) {
    throw new SetupError(`${folder} does not exist; --fleets needs a folder of fleets`);
  }
  if (!statSync(folder).isDirectory()) {
    throw new SetupError(`${folder} is a file; --fleets needs the folder that holds the fleets`);
  }
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(folder, entry.name, "fleet.json")))
    .map(({ name }) => name)
    .sort();
  if (names.length === 0) {
    throw new SetupError(`${folder} holds no fleet: no folder in it has a fleet.json`);
  }
  return names;
}

/** @param {string} folder @param {string} name @returns {Fleet} */
export function readFleet(folder, name) {
  const at = join(folder, name);
  const { endMs, processes: listed } = json(join(at, "fleet.json"));
  const { services } = json(join(at, "expect.json"));
  if (!Array.isArray(listed) || !Number.isFinite(endMs) || !isRecord(services)) {
    throw new SetupError(
      `${at} is not a fleet: fleet.json needs endMs and processes, expect.json services`,
    );
  }
  /** @type {Map<string, Process>} */
  const processes = new Map();
  for (const each of listed) {
    const process = processOf(each, `${at}/fleet.json`);
    if (processes.has(process.process)) {
      throw new SetupError(`${at}/fleet.json: process ${process.process} is listed twice`);
    }
    processes.set(process.process, process);
  }
  const labelled = new Set([...processes.values()].map(({ service }) => service));
  for (const [service, label] of Object.entries(services)) {
    if (!labelled.has(service)) {
      throw new SetupError(`${at}/expect.json: fleet.json has no process of service ${service}`);
    }
    checkLabel(label, `${at}/expect.json: ${service}`);
  }
  rows(join(at, "readings.csv"), 4, ([process = "", time, rss, requests], where) => {
    const found = processes.get(process);
    if (found === undefined) {
      throw new SetupError(`${where}: fleet.json has no process ${process}`);
    }
    add(found.rss, time, rss, where);
    if (requests !== "" && requests !== undefined) {
      found.requests ??= none();
      add(found.requests, time, requests, where);
    }
  });
  /** @type {Map<string, Readings>} */
  const sites = new Map();
  if (existsSync(join(at, "sites.csv"))) {
    rows(join(at, "sites.csv"), 4, ([process = "", time, bytes, stack = ""], where) => {
      const found = processes.get(process);
      if (found === undefined) {
        throw new SetupError(`${where}: fleet.json has no process ${process}`);
      }
      const key = `${process}\n${stack}`;
      let live = sites.get(key);
      if (live === undefined) {
        live = none();
        sites.set(key, live);
        found.sites.push({ stack: stack.split(";").map((frame) => frameOf(frame, where)), live });
      }
      add(live, time, bytes, where);
    });
  }
  return { name, endMs, processes: [...processes.values()], labels: services };
}

/** @param {string} folder @param {Fleet} fleet */
export function writeFleet(folder, { name, endMs, processes, labels }) {
  const at = join(folder, name);
  mkdirSync(at, { recursive: true });
  const listed = processes.map(({ rss, requests, sites, kind, holders, ...row }) => ({
    ...row,
    ...(holders.length === 0
      ? {}
      : { holders: holders.map((one) => ({ ...one, line: textOf(one.line) })) }),
  }));
  const write = (/** @type {string} */ file, /** @type {string} */ text) =>
    writeFileSync(join(at, file), text);
  write("fleet.json", `${JSON.stringify({ endMs, processes: listed }, null, 1)}\n`);
  write("expect.json", `${JSON.stringify({ services: labels }, null, 1)}\n`);
  const readings = ["process,timeMs,rssBytes,requestsPerSecond"];
  const siteRows = ["process,timeMs,liveBytes,stack"];
  for (const { process, rss, requests, sites } of processes) {
    rss.times.forEach((time, row) => {
      const rate = requests === null ? "" : (requests.values[row] ?? 0).toFixed(3);
      readings.push(`${process},${Math.round(time)},${Math.round(rss.values[row] ?? 0)},${rate}`);
    });
    for (const { stack, live } of sites) {
      const text = stack.map(textOf).join(";");
      live.times.forEach((time, row) => {
        siteRows.push(
          `${process},${Math.round(time)},${Math.round(live.values[row] ?? 0)},${text}`,
        );
      });
    }
  }
  write("readings.csv", `${readings.join("\n")}\n`);
  if (siteRows.length > 1) {
    write("sites.csv", `${siteRows.join("\n")}\n`);
  }
}

/** @param {Fleet} fleet @returns {Fleet} */
export function withoutAgents({ processes, labels, ...about }) {
  const bare = Object.entries(labels).map(([service, { culprit, ...label }]) => [service, label]);
  return {
    ...about,
    processes: processes.map((each) => ({ ...each, sites: [], holders: [] })),
    labels: Object.fromEntries(bare),
  };
}

/** @returns {Readings} */
function none() {
  return { times: [], values: [] };
}

/**
 * @param {Readings} readings @param {string | undefined} time @param {string | undefined} value
 * @param {string} where
 */
function add(readings, time, value, where) {
  const [timeMs, number] = [Number(time), Number(value)];
  if (!Number.isFinite(timeMs) || !Number.isFinite(number) || time === "" || value === "") {
    throw new SetupError(`${where}: needs a time in ms and a number`);
  }
  if (timeMs < (readings.times.at(-1) ?? Number.NEGATIVE_INFINITY)) {
    throw new SetupError(`${where}: the times of a process must ascend`);
  }
  readings.times.push(timeMs);
  readings.values.push(number);
}

/** @param {string} text "function file:line" @param {string} where @returns {Frame} */
function frameOf(text, where) {
  const [, call, file, line] = /^(.*\S) (\S+):(\d+)$/.exec(text.trim()) ?? [];
  if (call === undefined || file === undefined) {
    throw new SetupError(`${where}: a frame is "function file:line", with ";" between frames`);
  }
  return {
    function: call,
    file,
    line: Number(line),
    kind: /\.so\b/.test(file) ? "native" : "python",
  };
}

/** @param {any} each @param {string} where @returns {Process} */
function processOf(each, where) {
  if (typeof each?.process !== "string" || typeof each.service !== "string") {
    throw new SetupError(`${where}: a process needs the texts process and service`);
  }
  const { process, service, version = "", instance = process, startedMs } = each;
  const { endedMs = null, limitBytes = 0, holders = [] } = each;
  if (
    !Number.isFinite(startedMs) ||
    (endedMs !== null && !(endedMs >= startedMs)) ||
    !(limitBytes >= 0) ||
    !Array.isArray(holders)
  ) {
    throw new SetupError(
      `${where}: process ${process} needs startedMs, an endedMs that is null or later, and limitBytes from 0`,
    );
  }
  return {
    ...{ process, service, version: String(version), instance: String(instance) },
    ...{ startedMs, endedMs, limitBytes, rss: none(), requests: null, sites: [], kind: null },
    holders: holders.map((one) => holderOf(one, where)),
  };
}

/** @param {any} label @param {string} where */
function checkLabel(label, where) {
  const { leak, startMs, version, culprit } = label ?? {};
  if (typeof leak !== "boolean") {
    throw new SetupError(`${where} needs leak: true or false`);
  }
  if (leak && (!Number.isFinite(startMs) || (version !== null && typeof version !== "string"))) {
    throw new SetupError(
      `${where} leaks, so it needs startMs, and a version that is a text or null`,
    );
  }
  const isKnown = typeof culprit?.file === "string" && Array.isArray(culprit.functions);
  if (leak && culprit !== undefined && !isKnown) {
    throw new SetupError(`${where}: culprit needs the text file and the list functions`);
  }
}

/** @param {unknown} value */
function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {Frame} frame */
function textOf({ function: call, file, line }) {
  return `${call} ${file}:${line}`;
}

/** @param {any} holder @param {string} where @returns {Holder} */
function holderOf({ line, path, type, bound }, where) {
  if (typeof line !== "string" || !Array.isArray(path) || typeof type !== "string") {
    throw new SetupError(`${where}: a holder needs the texts line and type, and the list path`);
  }
  const known = Number.isFinite(bound) && bound > 0 ? { bound } : {};
  return { line: frameOf(line, where), path: path.map(String), type, ...known };
}

/** @param {string} path @returns {any} */
function json(path) {
  let found;
  try {
    found = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new SetupError(`${path}: ${/** @type {Error} */ (error).message}`);
  }
  if (!isRecord(found)) {
    throw new SetupError(`${path}: needs a JSON object, as docs/fleetbench.md describes it`);
  }
  return found;
}

/**
 * Calls `take` with the fields of each line after the title; the last field may hold commas.
 * @param {string} path @param {number} fields @param {(row: string[], where: string) => void} take
 */
function rows(path, fields, take) {
  let text;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new SetupError(`${path}: ${/** @type {Error} */ (error).message}`);
  }
  text.split(/\r?\n/).forEach((line, at) => {
    if (at > 0 && line !== "") {
      const parts = line.split(",");
      take([...parts.slice(0, fields - 1), parts.slice(fields - 1).join(",")], `${path}:${at + 1}`);
    }
  });
}
