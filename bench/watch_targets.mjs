/**
 * What a collector costs the programs that it watches. Programs with the same work in three groups: with the agent, recorded
 * from outside, and not watched. The first two change places after each round, so that neither the program nor the time of
 * day decides.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { ratioWithInterval } from "./statistics.mjs";

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
/** A new policy is read, agents are loaded and removed within this time. */
const CHANGE_MS = 12_000;

/** @typedef {{gapMs: number, turns: number, cpuSeconds: number}} Answer */

/**
 * @param {{tidemark: string, python: string, folder: string, rounds: number, seconds: number}} options
 * @returns {Promise<{ratio: ReturnType<typeof ratioWithInterval>, watchedGapMs: number, otherGapMs: number, attached: number}>} CPU time of a turn with the
 *   agent relative to one without, the longest gaps of watched programs and of the others, and how often an agent was loaded
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
  withAgent("a");
  const words = ["watch", "--config", policy, "--folder", join(folder, "targets")];
  const collector = spawn(tidemark, words, { stdio: ["ignore", "ignore", "pipe"] });
  let attached = 0;
  createInterface({ input: collector.stderr }).on("line", (line) => {
    attached += line.includes("recording it with the agent") ? 1 : 0;
  });
  /** @type {number[]} */
  const ratios = [];
  const gaps = { watched: 0, other: 0 };
  const askAll = async () => {
    const answers = await Promise.all(programs.map(({ ask }) => ask()));
    programs.forEach(({ group }, at) => {
      const kind = group === "never" ? "other" : "watched";
      gaps[kind] = Math.max(gaps[kind], /** @type {Answer} */ (answers[at]).gapMs);
    });
    return answers;
  };
  try {
    await pause(CHANGE_MS);
    await Promise.all(programs.map(({ ask }) => ask())); // the gaps of their own start do not count
    for (let round = 0; round < rounds; round++) {
      const group = round % 2 === 0 ? "a" : "b";
      withAgent(group);
      await pause(CHANGE_MS);
      const before = await askAll();
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
    const exit = once(collector, "exit");
    collector.kill("SIGTERM");
    await exit;
    await askAll();
    for (const { child } of programs) {
      child.kill("SIGKILL");
    }
  }
  return {
    ratio: ratioWithInterval(ratios),
    watchedGapMs: gaps.watched,
    otherGapMs: gaps.other,
    attached,
  };
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
