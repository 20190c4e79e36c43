/**
 * What a collector costs the programs that it watches. Programs with the same work in three groups: with the agent, recorded
 * from outside, and not watched. The first two change places after each round, so that neither the program nor the time of
 * day decides.
 *
 * A pause is what the collector reports: from the first thread that it stops to the last one that runs again. A gap is what
 * a program sees of it, and of everything else: the agent's own start, and waiting for a core. Gaps are therefore compared
 * over windows of the same length: in which the programs are entered, of programs that nothing watches meanwhile, and of
 * the same programs before there is a collector.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { quantile, ratioWithInterval } from "./statistics.mjs";

/** Works and sleeps; prints its longest gap since the last question in ms, its turns and its CPU time in s. */
const BEATING = `
import json, sys, threading, time
longest, turns = 0.0, 0
def answer():
    global longest
    for line in sys.stdin:
        print(longest * 1000, turns, time.process_time(), flush=True)
        longest = 0.0
threading.Thread(target=answer, daemon=True).start()
before = time.perf_counter()
while True:
    json.loads(json.dumps({"values": list(range(300))}))
    time.sleep(0.001)
    now = time.perf_counter()
    longest = max(longest, now - before)
    before = now
    turns += 1
`;
const GROUPS = /** @type {const} */ (["a", "b", "never"]);
const OF_A_GROUP = 2;
/** A new policy is read, agents are loaded and removed within this time: a window of gaps. */
const CHANGE_MS = 12_000;

/** @typedef {{gapMs: number, turns: number, cpuSeconds: number}} Answer */
/** @typedef {{entered: number[], unwatched: number[], before: number[]}} Gaps in ms, one of each program and window */

/**
 * @param {{tidemark: string, python: string, folder: string, rounds: number, seconds: number}} options
 * @returns {Promise<{ratio: ReturnType<typeof ratioWithInterval>, pausesMs: number[], gaps: Gaps}>} CPU time of a turn with
 *   the agent relative to one without, and one pause for each time that an agent was loaded or removed
 */
export async function measureTargets({ tidemark, python, folder, rounds, seconds }) {
  const programs = GROUPS.flatMap((group) =>
    Array.from({ length: OF_A_GROUP }, () => start(python, group)),
  );
  const policy = join(folder, "targets.yaml");
  const withAgent = (/** @type {string} */ group) =>
    writeFileSync(
      policy,
      `defaults: {warm_up: 1s, turn: 1h}
select:
  - {match: {service: "beating-${group}"}}
  - {match: {service: "beating-never"}, watch: never}
  - {match: {service: "beating-*"}, watch: outside}
  - {match: {}, watch: never}
`,
    );
  /** @type {Gaps} */
  const gaps = { entered: [], unwatched: [], before: [] };
  const askAll = () => Promise.all(programs.map(({ ask }) => ask()));
  await pause(CHANGE_MS);
  await askAll(); // the gaps of their own start do not count
  for (let window = 0; window < rounds; window++) {
    await pause(CHANGE_MS);
    gaps.before.push(...(await askAll()).map(({ gapMs }) => gapMs));
  }
  withAgent("a");
  const words = ["watch", "--config", policy, "--folder", join(folder, "targets")];
  const collector = spawn(tidemark, words, { stdio: ["ignore", "ignore", "pipe"] });
  const pausesMs = pausesIn(collector.stderr);
  /** @type {number[]} */
  const ratios = [];
  /** Of a window in which all watched programs are entered. */
  const askChanged = async () => {
    const answers = await askAll();
    answers.forEach(({ gapMs }, at) => {
      gaps[programs[at]?.group === "never" ? "unwatched" : "entered"].push(gapMs);
    });
    return answers;
  };
  try {
    for (let round = 0; round < rounds; round++) {
      const group = round % 2 === 0 ? "a" : "b";
      withAgent(group);
      await pause(CHANGE_MS);
      const before = await (round === 0 ? askAll() : askChanged()); // only one group is entered at first
      await pause(seconds * 1000);
      const after = await askAll();
      const cost = (/** @type {string} */ wanted) => {
        const rows = programs.flatMap((program, at) => (program.group === wanted ? [at] : []));
        const grown = (/** @type {"cpuSeconds" | "turns"} */ name) =>
          rows.reduce((sum, at) => sum + (after[at]?.[name] ?? 0) - (before[at]?.[name] ?? 0), 0);
        return grown("cpuSeconds") / grown("turns");
      };
      ratios.push(cost(group) / cost(group === "a" ? "b" : "a"));
    }
  } finally {
    const exit = once(collector, "close");
    collector.kill("SIGTERM");
    await exit;
    for (const { child } of programs) {
      child.kill("SIGKILL");
    }
  }
  return { ratio: ratioWithInterval(ratios), pausesMs, gaps };
}

/**
 * The pauses that a collector prints from now on: each agent that it loads, and the longest of each that it removes.
 * @param {NodeJS.ReadableStream} stderr
 */
export function pausesIn(stderr) {
  /** @type {number[]} */
  const pausesMs = [];
  createInterface({ input: stderr }).on("line", (line) => {
    const ms = /(?:it was paused for|its longest pause was) ([\d.]+) ms/.exec(line)?.[1];
    if (ms !== undefined) {
      pausesMs.push(Number(ms));
    }
  });
  return pausesMs;
}

/** Median, 99th percentile and maximum. @param {number[]} values */
export function spread(values) {
  return values.length === 0
    ? "-"
    : [0.5, 0.99, 1].map((q) => quantile(values, q).toFixed(1)).join(", ");
}

/** @param {string} python @param {string} group */
function start(python, group) {
  const child = spawn(python, ["-c", BEATING], {
    stdio: ["pipe", "pipe", "ignore"],
    env: { ...process.env, TIDEMARK_SERVICE: `beating-${group}` },
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    group,
    child,
    /** @returns {Promise<Answer>} */
    async ask() {
      child.stdin.write("\n");
      const [gapMs = 0, turns = 0, cpuSeconds = 0] = String((await lines.next()).value)
        .split(" ")
        .map(Number);
      return { gapMs, turns, cpuSeconds };
    },
  };
}
