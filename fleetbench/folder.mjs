/**
 * Reads and writes folders of labelled fleets; docs/fleetbench.md describes the format.
 *
 *   DIR/FLEET/fleet.json     processes: service, version, instance, start, end, limit
 *             readings.csv   process,timeMs,rssBytes,requestsPerSecond
 *             sites.csv      process,timeMs,liveBytes,stack          where the agent ran
 *             expect.json    the label of each service
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SetupError } from "../scripts/command.mjs";

/**
 * @typedef {{times: number[], values: number[]}} Readings
 * @typedef {{function: string, file: string, line: number, kind: "python" | "native"}} Frame
 * @typedef {{process: string, service: string, version: string, instance: string, startedMs: number,
 *   endedMs: number | null, limitBytes: number, rss: Readings, requests: Readings | null,
 *   sites: {stack: Frame[], live: Readings}[], kind: null, holders: []}} Process
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
  if (!Array.isArray(listed) || !Number.isFinite(endMs) || typeof services !== "object") {
    throw new SetupError(
      `${at} is no fleet: fleet.json needs endMs and processes, expect.json services`,
    );
  }
  /** @type {Map<string, Process>} */
  const processes = new Map();
  for (const each of listed) {
    if (typeof each.process !== "string" || typeof each.service !== "string") {
      throw new SetupError(`${at}/fleet.json: a process needs the texts process and service`);
    }
    const {
      process,
      service,
      version = "",
      instance = process,
      startedMs,
      endedMs,
      limitBytes,
    } = each;
    processes.set(process, {
      ...{ process, service, version, instance, startedMs, endedMs: endedMs ?? null },
      ...{
        limitBytes: limitBytes ?? 0,
        rss: none(),
        requests: null,
        sites: [],
        kind: null,
        holders: [],
      },
    });
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
  const listed = processes.map(({ rss, requests, sites, kind, holders, ...row }) => row);
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
      const text = stack
        .map(({ function: call, file, line }) => `${call} ${file}:${line}`)
        .join(";");
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

/** @param {string} path @returns {any} */
function json(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new SetupError(`${path}: ${/** @type {Error} */ (error).message}`);
  }
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
