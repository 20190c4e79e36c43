/**
 * The cost of `tidemark watch` with many Python programs:
 * `npm run bench -- watch [--programs 100] [--agents 0,10] [--first 60] [--later 120] [--rounds 6]`
 *
 * One in ten of the programs is busy (20 small requests a second), the others sleep. The cost is read from /proc: of
 * Node with its threads, and of the keepers that it starts. For each number of agents: CPU time in the first
 * `--first` seconds, then the share of a core over `--later`, RSS at rest (median) and at its highest, and the pauses that the
 * collector reports. Then, in `--rounds` rounds, what the watched programs themselves notice (watch_targets.mjs).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findInterpreters } from "../scripts/environment/interpreters.mjs";
import { describeMachine } from "./machine.mjs";
import { recorderCost } from "./process_cost.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { formatRatio, median } from "./statistics.mjs";
import { measureTargets, pausesIn, spread } from "./watch_targets.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const tidemark = join(here, "../bin/tidemark");
const { values: options } = parseArgs({
  options: {
    programs: { type: "string", default: "100" },
    agents: { type: "string", default: "0,10" },
    first: { type: "string", default: "60" },
    later: { type: "string", default: "120" },
    rounds: { type: "string", default: "6" },
  },
});
const SAMPLE_MS = 500;
const NO_PROGRAM = -1;
/** Shares of a core, RSS at rest without agents, and the pause that `attach` may cause. */
const BOUNDS = { cheap: 0.003, tenAgents: 0.01, rssBytes: 120 * 2 ** 20, pauseMs: 10 };
const IDLE = "import time\nwhile True: time.sleep(0.5)";
const BUSY = `import json, time
while True:
    json.loads(json.dumps({"values": list(range(300))}))
    time.sleep(0.05)`;

const count = Number(options.programs);
const python =
  (await findInterpreters()).findLast(({ freeThreaded }) => !freeThreaded)?.path ?? "python3";
const folder = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
const programs = Array.from({ length: count }, (_, n) =>
  spawn(python, ["-c", n % 10 === 0 ? BUSY : IDLE], {
    stdio: "ignore",
    env: { ...process.env, TIDEMARK_SERVICE: `benched-${n % 20}` },
  }),
);

/** @type {string[][]} */
const rows = [];
/** @type {string[]} */
const missed = [];
let load = 0;
const TARGET_SECONDS = 20;
/** @type {Awaited<ReturnType<typeof measureTargets>>} */
let targets;
try {
  try {
    await pause(10_000);
    for (const agents of options.agents.split(",")) {
      rows.push(await measure(agents));
      console.log(rows.at(-1)?.join("  "));
    }
  } finally {
    for (const program of programs) {
      program.kill("SIGKILL");
    }
  }
  const rounds = Number(options.rounds);
  targets = await measureTargets({ tidemark, python, folder, rounds, seconds: TARGET_SECONDS });
  checkPauses("one program at a time", targets.pausesMs);
  console.log(targets.ratio, targets.pausesMs, targets.gaps);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
writeResults(
  "watch",
  [
    "## The collector",
    "",
    `\`npm run bench -- watch\` on ${describeMachine(python)}.`,
    `\`tidemark watch\` beside ${count} Python programs, one in ten busy. CPU and RSS of the collector and all that it starts.`,
    "",
    `Bounds: ${percent(BOUNDS.cheap)} of a core and ${mib(BOUNDS.rssBytes)} without agents, ${percent(BOUNDS.tenAgents)} with ten; no pause above ${BOUNDS.pauseMs} ms. ${missed.length === 0 ? "All are met" : `Not met: ${missed.join(", ")}`}. The highest load average of the machine meanwhile, other work included, was ${load.toFixed(1)}; CPU time and pauses are longer on a busy machine. Pauses and gaps: median, 99th percentile, maximum.`,
    "",
    markdownTable(
      [
        "agents",
        `CPU, first ${options.first} s`,
        `CPU, next ${options.later} s, of a core`,
        "RSS at rest",
        "RSS highest",
        "pauses, ms",
      ],
      rows,
    ),
    "",
    `CPU time of watched programs: ${formatRatio(targets.ratio)} with the agent, relative to programs of the same work that are recorded from outside (geometric mean and 95 % interval over ${TARGET_SECONDS} s in each of ${options.rounds} ${options.rounds === "1" ? "round" : "rounds"}, between which they change places).`,
    "",
    "The same programs, whose loop takes 1 ms and a little work. A pause is as the collector reports it; the longest gap in the loop, in windows of 12 s, is what the program sees: also the start of the agent, and the time that it waits for a core without any pause.",
    "",
    markdownTable(
      ["programs", "windows", "ms"],
      [
        ["pauses, when an agent is loaded or removed", targets.pausesMs],
        ["longest gap, while one is", targets.gaps.entered],
        ["longest gap at the same time, programs that nothing watches", targets.gaps.unwatched],
        ["longest gap before the collector starts, all programs", targets.gaps.before],
      ].map(([name, values]) => [
        String(name),
        String(values?.length),
        spread(/** @type {number[]} */ (values)),
      ]),
    ),
  ].join("\n"),
);

/** @param {string} agents @returns {Promise<string[]>} */
async function measure(agents) {
  const policy = join(folder, "policy.yaml");
  writeFileSync(
    policy,
    `defaults: {warm_up: 1s, agents: ${agents}, turn: 1h}
select:
  - {match: {service: "benched-*"}}
  - {match: {}, watch: never}
`,
  );
  const words = ["watch", "--config", policy, "--folder", join(folder, `recordings-${agents}`)];
  const child = spawn(tidemark, words, { stdio: ["ignore", "ignore", "pipe"] });
  const pausesMs = pausesIn(child.stderr);
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  /** @type {{at: number, cpuMs: number, rssBytes: number}[]} */
  const samples = [];
  while (seconds() < Number(options.first) + Number(options.later)) {
    await pause(SAMPLE_MS);
    const cost = recorderCost(/** @type {number} */ (child.pid), NO_PROGRAM);
    if (cost !== null) {
      samples.push({ at: seconds(), ...cost });
    }
  }
  const exit = once(child, "close");
  child.kill("SIGTERM");
  await exit;
  const early = samples.findLast(({ at }) => at <= Number(options.first));
  const last = samples.at(-1);
  if (early === undefined || last === undefined) {
    throw new Error("the collector ended early");
  }
  checkPauses(`with ${agents} agents`, pausesMs);
  const share = (last.cpuMs - early.cpuMs) / ((last.at - early.at) * 1000);
  const later = samples.filter(({ at }) => at > Number(options.first));
  load = Math.max(load, ...loadavg());
  const rssAtRest = median(later.map(({ rssBytes }) => rssBytes));
  const bound = agents === "0" ? BOUNDS.cheap : agents === "10" ? BOUNDS.tenAgents : 1;
  if (share > bound) {
    missed.push(`CPU with ${agents} agents`);
  }
  if (agents === "0" && rssAtRest > BOUNDS.rssBytes) {
    missed.push("RSS");
  }
  return [
    agents,
    `${(early.cpuMs / 1000).toFixed(2)} s`,
    percent(share),
    mib(rssAtRest),
    mib(Math.max(...samples.map(({ rssBytes }) => rssBytes))),
    spread(pausesMs),
  ];
}

/** @param {string} when @param {number[]} pausesMs */
function checkPauses(when, pausesMs) {
  if (Math.max(0, ...pausesMs) > BOUNDS.pauseMs) {
    missed.push(`pause ${when}`);
  }
}

/** @param {number} share */
function percent(share) {
  return `${(share * 100).toFixed(2)} %`;
}

/** @param {number} bytes */
function mib(bytes) {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}
