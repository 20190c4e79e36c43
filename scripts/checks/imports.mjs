/**
 * Checks the directions of imports (.dependency-cruiser.cjs and import_structure.mjs), and then tests the check itself:
 * in a small tree with planted violations of each rule, it must report exactly these.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { capture } from "../command.mjs";
import { root } from "../setup.mjs";
import { structureViolations } from "./import_structure.mjs";
import { say, verdicts } from "./stream.mjs";

const cruiser = join(root, "node_modules/dependency-cruiser/bin/dependency-cruise.mjs");
const config = join(root, ".dependency-cruiser.cjs");

/** Files of the small tree; an import that breaks a rule is followed by a comment with the rule's name. */
const planted = {
  "package.json": '{"type": "module", "devDependencies": {"vitest": "*"}}',
  "src/model/size.ts": "export const size = 1;",
  "src/linux/smaps.ts": 'import { size } from "../model/size.js"; export const smaps = size;',
  "src/model/up.ts": 'export type { Side } from "../record/side.js"; // model-imports-downwards',
  "src/formats/side.ts":
    'export { pool } from "../../src/segment/pool.js"; // formats-imports-downwards',
  "src/segment/pool.ts":
    'import type { Side } from "../record/side.js"; // segment-imports-downwards\nexport const pool = 1 as unknown as Side;',
  "src/record/side.ts": "export type Side = number;",
  "src/loose.ts": 'export { size } from "./model/size.js"; // every-file-has-a-room',
  "src/cli/circle.ts": 'export * from "./circleBack.js"; // no-cycles',
  "src/cli/circleBack.ts": 'export * from "./circle.js";',
  "src/cli/lost.ts": 'export * from "./nowhere.js"; // every-import-is-there',
  "src/cli/developer.ts": 'export { test } from "vitest"; // sources-use-no-development-packages',
  "src/cli/tested.ts": 'export * from "../../test/aid.js"; // sources-use-no-tests',
  "src/server/host.ts":
    'export { smaps } from "../linux/smaps.js"; // documents-of-recordings-need-no-recorder',
  "src/linux/index.ts": 'export { smaps } from "./smaps.js";',
  "src/inspect/index.ts": "export const summary = 1;",
  "src/cli/commands/deep.ts":
    'export { smaps } from "../../linux/smaps.js"; // commands-import-an-index',
  "src/cli/commands/two.ts":
    'export { summary } from "../../inspect/index.js"; // commands-import-one-room\nexport { smaps } from "../../linux/index.js";',
  "src/cli/commands/fine.ts":
    'export { summary } from "../../inspect/index.js"; export { size } from "../../model/size.js";',
  "src/gpu/index.ts": 'export { oom } from "./oom/oom.js";',
  "src/gpu/device.ts": "export const device = 1;",
  "src/gpu/oom/oom.ts": 'export { device as oom } from "../device.js";',
  "src/ledger/part.ts":
    'import type { Rule } from "./rules/rule.js"; // folders-form-no-circles\nexport const part = 1 as Rule;',
  "src/ledger/other.ts": "export const other = 1;",
  "src/ledger/rules/rule.ts": "export type Rule = number;",
  "src/ledger/rules/first.ts": 'export { other } from "../other.js"; // folders-form-no-circles',
  "test/aid.ts": "export const aid = 1;",
  "web/src/page.ts":
    'export { smaps } from "../../src/linux/smaps.js"; // web-uses-model-and-plan-only',
  "web/src/fine.ts": 'export { size } from "../../src/model/size.js";',
};

/**
 * @typedef {import("./import_structure.mjs").Violation} Violation
 */

export async function checkImports() {
  return verdicts([await importsAreAllowed(), await plantedViolationsAreFound()]);
}

async function importsAreAllowed() {
  const violations = await violationsIn(root);
  for (const { rule, from, to } of violations) {
    say(`${rule}: ${from} imports ${to}`);
  }
  return violations.length === 0;
}

/** Violations in a folder with src/, web/ and test/. @param {string} folder @returns {Promise<Violation[]>} */
async function violationsIn(folder) {
  const args = [cruiser, "--config", config, "--output-type", "json", "src", "web", "test"];
  const { output } = await capture(process.execPath, args, { cwd: folder });
  /** @type {{modules: import("./import_structure.mjs").Module[], summary: {violations: {rule: {name: string}, from: string, to: string}[]}}} */
  const { modules, summary } = JSON.parse(output);
  const violations = summary.violations.map(({ rule, from, to }) => ({
    rule: rule.name,
    from,
    to,
  }));
  return [...violations, ...structureViolations(modules)];
}

async function plantedViolationsAreFound() {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-imports-"));
  try {
    for (const [name, text] of Object.entries(planted)) {
      mkdirSync(join(folder, dirname(name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const violations = await violationsIn(folder);
    const found = violations.map(({ rule, from }) => `${from} breaks ${rule}`).sort();
    const expected = Object.entries(planted)
      .flatMap(([file, text]) =>
        [...text.matchAll(/\/\/ ([a-z-]+)/g)].map(([, rule]) => `${file} breaks ${rule}`),
      )
      .sort();
    if (found.join() === expected.join()) {
      return true;
    }
    say(`the check of imports, in a tree with these violations: ${expected.join(", ")},`);
    say(`reported ${found.join(", ")}`);
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
