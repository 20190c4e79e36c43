/**
 * `npm test`: set-up, build, every check. The last line is "N passed, N failed, N skipped".
 * `npm test -- NAME...` runs parts: a section's name, a project of vitest.config.ts, or part of a test
 * file's path. The environment is set up only if a part needs it.
 */
import { build } from "./build.mjs";
import { checkAgent } from "./checks/agent.mjs";
import { checkGenerated } from "./checks/generated.mjs";
import { checkHouse } from "./checks/house.mjs";
import { checkImports } from "./checks/imports.mjs";
import { checkStyle, checkTypes } from "./checks/language.mjs";
import { checkPython } from "./checks/python.mjs";
import { conclude, runAlone, runSideBySide } from "./checks/sections.mjs";
import { sum, verdicts } from "./checks/stream.mjs";
import { checkVitest } from "./checks/vitest.mjs";
import { runAsScript } from "./command.mjs";
import { makeEnvironment } from "./environment.mjs";
import { setUp } from "./setup.mjs";

/**
 * @typedef {import("./checks/sections.mjs").Section & {needs: Need[]}} Part
 * @typedef {"build" | "environment"} Need what a section uses in addition to the npm packages
 */

/** @type {Part[]} sections that use one core each, the longest first */
const singleCore = [
  { name: "agent", run: () => checkAgent("library"), needs: [] },
  { name: "agent-core", run: () => checkAgent("core"), needs: [] },
  { name: "python", run: checkPython, needs: ["environment"] },
  { name: "types", run: checkTypes, needs: ["build"] },
  { name: "generated", run: checkGenerated, needs: ["build"], fix: "npm run generate" },
  { name: "imports", run: checkImports, needs: ["build"] },
  { name: "style", run: checkStyle, needs: [], fix: "npm run format" },
  { name: "house", run: checkHouse, needs: [] },
];
/** Projects of vitest.config.ts, and what their tests need. */
const projects = new Map(
  /** @type {[string, Need[]][]} */ ([
    ["unit", ["build"]],
    ["system", ["build", "environment"]],
    ["matrix", ["build", "environment"]],
  ]),
);

/** @param {string[]} wanted @returns {Promise<number>} exit code */
async function test(wanted) {
  const parts = singleCore.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
  const vitest = vitestPart(wanted);
  const needs = new Set([...parts, ...(vitest ? [vitest] : [])].flatMap((part) => part.needs));
  const counts = [
    await runAlone({ name: "set-up", run: needs.has("environment") ? setUpForTests : setUpOnly }),
  ];
  if (sum(counts).failed === 0 && needs.has("build")) {
    counts.push(await runAlone({ name: "build", run: buildOnce }));
  }
  if (sum(counts).failed === 0) {
    counts.push(...(await runSideBySide(parts)));
    if (vitest !== undefined) {
      counts.push(await runAlone(vitest));
    }
  }
  return conclude(counts);
}

/** @param {string[]} wanted @returns {Part | undefined} undefined: no test in TypeScript is wanted */
function vitestPart(wanted) {
  const others = wanted.filter((name) => !singleCore.some((part) => part.name === name));
  if (others.length === 0 && wanted.length > 0) {
    return undefined;
  }
  const chosen = others.filter((name) => projects.has(name));
  const filters = others.filter((name) => !projects.has(name) && name !== "vitest");
  const needs = (chosen.length > 0 ? chosen : [...projects.keys()]).flatMap(
    (name) => projects.get(name) ?? [],
  );
  return { name: "vitest", run: () => checkVitest({ filters, projects: chosen }), needs };
}

async function setUpOnly() {
  await setUp();
  return verdicts([true]);
}

async function setUpForTests() {
  const { skipped } = await makeEnvironment();
  const reasons = skipped.map(({ what, why }) => `${what}: ${why}`);
  return { ...verdicts([true]), skipped: skipped.length, reasons };
}

async function buildOnce() {
  await build();
  return verdicts([true]);
}

await runAsScript(import.meta, () => test(process.argv.slice(2)));
