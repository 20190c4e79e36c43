/**
 * Attaches and detaches repeatedly on a FastAPI service under load, on every CPython found: `npm run bench --
 * soak [--cycles 1000] [--python 3.12]`. Its requests compute with NumPy; on one version a second service
 * uses torch. Fails if a request fails, or if anything is left behind.
 */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { makePackageFolder } from "../scripts/environment/packages.mjs";
import { readEnvironment } from "../scripts/environment.mjs";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { soak } from "./soak_cycles.mjs";
import { quantile } from "./statistics.mjs";

/** @typedef {import("../scripts/environment.mjs").Interpreter} Interpreter */

const { values: options } = parseArgs({
  options: { cycles: { type: "string", default: "1000" }, python: { type: "string", default: "" } },
});
const cycles = Number(options.cycles);
const workloads = fileURLToPath(new URL("workloads", import.meta.url));
const { interpreters } = readEnvironment();

/** @param {Interpreter} interpreter */
async function numpyService(interpreter) {
  const { path, chroot } = interpreter;
  const made = await makePackageFolder(
    "soak",
    "bench/requirements-soak.txt",
    interpreter,
    interpreters,
  );
  if (!chroot) {
    const command = [path, join(workloads, "numpy_service.py")];
    return { command, env: { PYTHONPATH: made }, remove() {} };
  }
  const folder = mkdtempSync(join(chroot, "tmp/soak-"));
  cpSync(made, join(folder, "packages"), { recursive: true });
  cpSync(join(workloads, "numpy_service.py"), join(folder, "numpy_service.py"));
  const inside = folder.slice(chroot.length);
  return {
    command: ["chroot", chroot, path, `${inside}/numpy_service.py`],
    env: { PYTHONPATH: `${inside}/packages` },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const ms = (/** @type {number} */ value) => value.toFixed(1);
const spread = (/** @type {number[]} */ values) =>
  `${ms(quantile(values, 0.5))}, ${ms(quantile(values, 0.99))}, ${ms(Math.max(...values))}`;

/** @type {string[][]} */
const rows = [];
/** @param {string} name @param {{command: string[], env: Record<string, string>}} service */
async function run(name, service) {
  const tell = (/** @type {number} */ cycle) =>
    cycle % 50 === 0 && console.error(`${name}: ${cycle} of ${cycles} cycles`);
  const result = await soak({ ...service, cycles, tell });
  const { before, after, loaded, alone, killed, pauses, attachMs } = result;
  rows.push([
    name,
    `${cycles}, ${killed}`,
    `${loaded.requests}, ${loaded.failed}`,
    `${ms(loaded.p50Ms)}, ${ms(loaded.p99Ms)}, ${ms(loaded.maxMs)}`,
    `${ms(alone.p50Ms)}, ${ms(alone.p99Ms)}, ${ms(alone.maxMs)}`,
    spread(pauses),
    spread(attachMs),
    `${before.descriptors}, ${after.descriptors}`,
    `${before.agentMappings}, ${after.agentMappings}`,
    `${before.mappings}, ${after.mappings}`,
    `${(result.rssGainBytes / 2 ** 20).toFixed(1)} MiB`,
  ]);
  console.error(rows.at(-1)?.join(" | "));
  const grown =
    after.descriptors > before.descriptors || after.agentMappings > before.agentMappings;
  if (loaded.failed > 0 || grown) {
    process.exitCode = 1;
  }
}

const wanted = interpreters.filter(
  ({ version, freeThreaded }) => !freeThreaded && version.startsWith(options.python),
);
for (const interpreter of wanted) {
  const { version, sharedLibrary } = interpreter;
  const service = await numpyService(interpreter);
  try {
    await run(`${version} ${sharedLibrary ? "shared" : "static"}, NumPy`, service);
  } finally {
    service.remove();
  }
}
const torch = await benchPython();
if ("3.12".startsWith(options.python)) {
  await run("3.12, torch inference", {
    command: [torch, join(workloads, "torch_service.py")],
    env: {},
  });
}

const markdown = `## Soak

\`npm run bench -- soak --cycles ${cycles}\` on ${describeMachine(torch)}. Tidemark
attaches to a FastAPI service under load and detaches, once a cycle; in one cycle of ten its recorder is killed. A twin
under the same load runs without Tidemark. Times in ms: p50, p99, maximum. Counts: after the fifth cycle, at the end.

${markdownTable(
  [
    "Python, service",
    "cycles, recorders killed",
    "requests, failed",
    "latency",
    "latency of the twin",
    "pause",
    "command to recording",
    "descriptors",
    "agent's mappings",
    "mappings",
    "RSS gained over the twin",
  ],
  rows,
)}
`;
console.log(markdown);
writeResults("soak", markdown);
