/** A server of a benchmark, in a process of its own, and what is measured of it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const tidemark = fileURLToPath(new URL("../bin/tidemark", import.meta.url));

/** @param {import("node:child_process").ChildProcess} server */
export async function stopped(server) {
  if (server.exitCode === null && server.signalCode === null) {
    const exit = once(server, "exit");
    server.kill("SIGTERM");
    await exit;
  }
}

/** @param {string} data its folder @returns {Promise<{url: string, child: import("node:child_process").ChildProcess}>} */
export async function startServer(data, config = "") {
  const file = join(data, "serve.yaml");
  writeFileSync(file, config);
  const words = ["serve", "--listen", "127.0.0.1:0", "--store", `duckdb:${data}`, "--json"];
  words.push("--config", file);
  const server = spawn(tidemark, [...words, "--log", "warnings"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  for await (const chunk of server.stdout) {
    printed += chunk;
    if (printed.includes("}")) {
      break;
    }
  }
  return { url: JSON.parse(printed).url, child: server };
}

const isRaw = (/** @type {string} */ name) => /^\d{4}-\d\d-\d\d\.duckdb$/.test(name);

/** Waits until old days have moved to coarser tiers. @param {string} data */
export async function daysMoved(data) {
  for (let left = 600; left > 0; left--) {
    const names = readdirSync(join(data, "days"));
    if (names.filter(isRaw).length <= 4 && !names.some((name) => name.endsWith(".unfinished"))) {
      return;
    }
    await pause(1000);
  }
  throw new Error("days do not move to coarser tiers");
}

/** @param {number[]} times @param {number} share */
export function quantile(times, share) {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** @param {number} value */
export function ms(value) {
  return `${value.toFixed(0)} ms`;
}

/** RSS of the server: bin/tidemark has become Node by exec. @param {number} pid */
export function rssOf(pid, field = "VmRSS") {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const [, kib = "0"] = new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status) ?? [];
  return Number(kib) * 1024;
}

/** CPU time of the server with all its threads, in s (proc_pid_stat(5), fields 14 and 15). @param {number} pid */
export function cpuOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user = "0", system = "0"] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11);
  return (Number(user) + Number(system)) / TICKS_PER_SECOND;
}

const TICKS_PER_SECOND = 100;

/** Waits until the server has nothing to do: it evaluates its alerts when it has started. @param {number} pid */
export async function idle(pid) {
  for (let used = cpuOf(pid), before = Number.NEGATIVE_INFINITY; used - before > 0.05; ) {
    await pause(2000);
    before = used;
    used = cpuOf(pid);
  }
}

/** @param {string} path @returns {number} */
export function bytesBelow(path) {
  return readdirSync(path, { recursive: true, encoding: "utf8" }).reduce((sum, name) => {
    const about = statSync(join(path, name));
    return about.isFile() ? sum + about.size : sum;
  }, 0);
}
