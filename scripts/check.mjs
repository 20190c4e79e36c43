/**
 * `npm run check`: run this before a commit. It takes under three minutes on two cores and checks types, style,
 * imports, generated files, unit tests, the agent's unit tests, and one run of `tidemark run`. It needs no
 * test environment. `npm run check -- NAME...` runs single sections. The last line is
 * "N passed, N failed, N skipped".
 */
import { build } from "./build.mjs";
import { checkAgentCore } from "./checks/agent_core.mjs";
import { checkGenerated } from "./checks/generated.mjs";
import { checkHouse } from "./checks/house.mjs";
import { checkImports } from "./checks/imports.mjs";
import { checkStyle, checkTypes } from "./checks/language.mjs";
import { conclude, runAlone, runSideBySide } from "./checks/sections.mjs";
import { checkSmoke } from "./checks/smoke.mjs";
import { sum, verdicts } from "./checks/stream.mjs";
import { checkVitest } from "./checks/vitest.mjs";
import { runAsScript, SetupError } from "./command.mjs";

/** @typedef {import("./checks/sections.mjs").Section} Section */

/** @type {Section[]} sections that use one core each, the longest first */
const singleCore = [
  { name: "types", run: checkTypes, again: "npm run check -- types" },
  { name: "generated", run: checkGenerated, fix: "npm run generate" },
  { name: "agent", run: checkAgentCore, again: "npm run check -- agent" },
  { name: "imports", run: checkImports, again: "npm run check -- imports" },
  { name: "smoke", run: checkSmoke, again: "npm run check -- smoke" },
  { name: "style", run: checkStyle, fix: "npm run format" },
  { name: "house", run: checkHouse, again: "npm run check -- house" },
];
/** @type {Section} */
const unit = {
  name: "unit",
  run: () => checkVitest({ projects: ["unit"] }),
  again: "npx vitest run --project unit FILE",
};

/** @param {string[]} wanted @returns {Promise<number>} exit code */
async function check(wanted) {
  const names = [...singleCore, unit].map(({ name }) => name);
  const unknown = wanted.filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    throw new SetupError(`no section ${unknown.join(", ")}; there are ${names.join(", ")}`);
  }
  const isWanted = (/** @type {Section} */ { name }) =>
    wanted.length === 0 || wanted.includes(name);
  const counts = [await runAlone({ name: "build", run: buildOnce })];
  if (sum(counts).failed === 0) {
    counts.push(...(await runSideBySide(singleCore.filter(isWanted))));
    if (isWanted(unit)) {
      counts.push(await runAlone(unit));
    }
  }
  return conclude(counts);
}

async function buildOnce() {
  await build();
  return verdicts([true]);
}

await runAsScript(import.meta, () => check(process.argv.slice(2)));
