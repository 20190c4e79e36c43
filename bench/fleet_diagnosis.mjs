/**
 * The fleet diagnosis of many services: the CPU time of one evaluation, and its memory:
 * `npm run bench -- fleet_diagnosis [--services 250] [--instances 30]`
 *
 * Each service has two versions, so it has twice as many processes, with readings at the steps that the store gives: 14 days
 * of daily load with noise. A quarter of the services leak, a quarter fill caches, a quarter know their requests; in half of
 * each, every seventh instance was restarted, because a restart makes an instance harder to compare with its siblings. Evidence is
 * made a service at a time, as the server reads it; the time to make it does not count, nor does the store's query.
 */
import { parseArgs } from "node:util";
import { Random } from "../fleetbench/random.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";

const { values: options } = parseArgs({
  options: {
    services: { type: "string", default: "250" },
    instances: { type: "string", default: "30" },
  },
});
const { diagnoseService } = await import("../dist/diagnose/index.js");

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MIB = 2 ** 20;
const END = Date.UTC(2026, 2, 25, 9);
/** From, to and step before the end, as in src/store/duckdb/queries/fleet_evidence.ts. */
const STEPS = /** @type {const} */ ([
  [14 * DAY, DAY, 30 * MINUTE],
  [DAY, 6 * HOUR, 15 * MINUTE],
  [6 * HOUR, HOUR, 4 * MINUTE],
  [HOUR, 0, MINUTE],
]);
/** Days ago. */
const VERSIONS = /** @type {const} */ ([
  ["1.0", 13, 4],
  ["1.1", 4, 0],
]);

/** With an end of the life in the middle of each version. @param {boolean} isRestarted */
function livesOf(isRestarted) {
  return VERSIONS.flatMap(([version, from, to]) => {
    const middle = (from + to) / 2;
    return isRestarted
      ? /** @type {const} */ ([
          [version, from, middle],
          [version, middle, to],
        ])
      : [/** @type {const} */ ([version, from, to])];
  });
}

/** @param {number} number @param {number} instances */
function serviceOf(number, instances) {
  const random = new Random(number + 1);
  const kind = number % 4;
  const hasRestarts = number % 8 < 4;
  const processes = Array.from({ length: instances }, (_, instance) =>
    livesOf(hasRestarts && instance % 7 === 3).map(([version, from, to], life) => {
      const startedMs = END - from * DAY + instance * MINUTE;
      const endedMs = END - to * DAY;
      const times = STEPS.flatMap(([since, until, step]) =>
        Array.from({ length: (since - until) / step }, (_, at) => END - since + at * step),
      ).filter((time) => time >= startedMs && time < endedMs);
      const leak = kind === 1 && to === 0 ? 2 : 0;
      const cache = kind === 2 ? 150 : 0;
      const base = random.between(200, 250);
      const loadAt = (/** @type {number} */ time) => 1 - Math.cos((2 * Math.PI * time) / DAY);
      const values = times.map((time) => {
        const hours = (time - startedMs) / HOUR;
        const grown = leak * hours + cache * (1 - Math.exp(-hours / 9));
        return MIB * (base + grown + 20 * loadAt(time) + random.normal());
      });
      return {
        ...{ process: `${instance}/${life}`, instance: `app-${instance}`, version, startedMs },
        ...{ endedMs: to === 0 ? null : endedMs, limitBytes: 2048 * MIB, rss: { times, values } },
        requests: kind === 3 ? { times, values: times.map((time) => 100 * loadAt(time)) } : null,
        ...{ sites: [], kind: null, holders: [] },
      };
    }),
  ).flat();
  return { service: `s${number}`, window: { startMs: END - 14 * DAY, endMs: END }, processes };
}

/** Intervals are widened for as many. */
const TOGETHER = 1000;
const [services, instances] = [Number(options.services), Number(options.instances)];
let [cpuMs, processes, leaks, mostBytes] = [0, 0, 0, 0];
for (let number = 0; number < services; number++) {
  const evidence = serviceOf(number, instances);
  processes += evidence.processes.length;
  const cpu = process.cpuUsage();
  leaks += Number(diagnoseService(evidence, TOGETHER).leak !== undefined);
  const { user, system } = process.cpuUsage(cpu);
  cpuMs += (user + system) / 1000;
  mostBytes = Math.max(mostBytes, process.memoryUsage.rss());
}
const seconds = (/** @type {number} */ ms) => `${(ms / 1000).toFixed(1)} s`;
const table = markdownTable(
  [
    "services",
    "instances",
    "processes",
    "leaks found",
    "CPU time",
    "of 1,000 services",
    "highest RSS",
  ],
  [
    [
      ...[services, instances, processes, leaks].map(String),
      ...[
        seconds(cpuMs),
        seconds((cpuMs * TOGETHER) / services),
        `${Math.round(mostBytes / MIB)} MiB`,
      ],
    ],
  ],
);
console.log(table);
writeResults(
  "fleet_diagnosis",
  `## Fleet diagnosis

\`npm run bench -- fleet_diagnosis\` on ${describeMachine("python3")}. One evaluation on one core, without the store's query.

${table}`,
);
