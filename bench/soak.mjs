/**
 * Attach and detach over and over on a FastAPI service under load: `npm run bench -- soak [--cycles 1000]
 * [--python PATH] [--service plain_service.py]`. Fails where a request fails, or where something stays behind.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { soak } from "./soak_cycles.mjs";
import { quantile } from "./statistics.mjs";

const { values: options } = parseArgs({
  options: {
    cycles: { type: "string", default: "1000" },
    python: { type: "string" },
    service: { type: "string", default: "fastapi_service.py" },
  },
});
const python = options.python ?? (await benchPython());
const cycles = Number(options.cycles);
const result = await soak({
  python,
  cycles,
  service: [fileURLToPath(new URL(`workloads/${options.service}`, import.meta.url))],
  tell: (cycle) => cycle % 50 === 0 && console.error(`${cycle} of ${cycles} cycles`),
});
const { before, after, loaded, alone, pauses, attachMs } = result;
const ms = (/** @type {number} */ value) => `${value.toFixed(2)} ms`;
const spread = (/** @type {number[]} */ values) =>
  `p50 ${ms(quantile(values, 0.5))}, p99 ${ms(quantile(values, 0.99))}, max ${ms(Math.max(...values))}`;
const markdown = `## Soak

\`npm run bench -- soak --cycles ${cycles}\` (${options.service}) on ${describeMachine(python)}. Attached and left ${cycles} times
under load, the recorder killed ${result.killed} times; beside a twin under the same load.

${markdownTable(
  ["", "attached", "twin"],
  [
    [
      "requests, failed",
      `${loaded.requests}, ${loaded.failed}`,
      `${alone.requests}, ${alone.failed}`,
    ],
    [
      "latency p50, p99, max",
      `${ms(loaded.p50Ms)}, ${ms(loaded.p99Ms)}, ${ms(loaded.maxMs)}`,
      `${ms(alone.p50Ms)}, ${ms(alone.p99Ms)}, ${ms(alone.maxMs)}`,
    ],
    ["pause of the process at a stop", spread(pauses), ""],
    ["from the command to recording", spread(attachMs), ""],
    ["descriptors, before and after", `${before.descriptors}, ${after.descriptors}`, ""],
    ["mappings, before and after", `${before.mappings}, ${after.mappings}`, ""],
    ["RSS gained over the twin", `${(result.rssGainBytes / 2 ** 20).toFixed(1)} MiB`, ""],
  ],
)}
`;
console.log(markdown);
writeResults("soak", markdown);
if (loaded.failed > 0 || after.descriptors > before.descriptors) process.exitCode = 1;
