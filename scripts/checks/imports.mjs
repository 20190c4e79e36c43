/**
 * Import directions (.dependency-cruiser.cjs), and that the check sees what it is there to see: in
 * a small tree with one planted violation of each kind, it must name these and no others.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { capture } from "../command.mjs";
import { root } from "../setup.mjs";
import { oneCheck, say, sum, verdicts } from "./stream.mjs";

const cruiser = join(root, "node_modules/dependency-cruiser/bin/dependency-cruise.mjs");
const config = join(root, ".dependency-cruiser.cjs");

/** Files of the small tree; a line that must not be there is marked with the rule it breaks. */
const planted = {
  "package.json": '{"type": "module", "devDependencies": {"vitest": "*"}}',
  "src/model/size.ts": "export const size = 1;",
  "src/linux/memory/smaps.ts":
    'import { size } from "../model/size.js"; export const smaps = size;',
  "src/model/up.ts": 'export { smaps } from "../linux/smaps.js"; // model-imports-downwards',
  "src/formats/side.ts": 'export { pool } from "../segment/pool.js"; // formats-imports-downwards',
  "src/segment/pool.ts":
    'import type { Side } from "../record/side.js"; // segment-imports-downwards\nexport const pool = 1 as unknown as Side;',
  "src/record/side.ts": "export type Side = number;",
  "src/loose.ts": 'export { size } from "./model/size.js"; // every-file-has-a-room',
  "src/cli/circle.ts": 'export * from "./circleBack.js"; // no-cycles',
  "src/cli/circleBack.ts": 'export * from "./circle.js";',
  "src/cli/lost.ts": 'export * from "./nowhere.js"; // every-import-is-there',
  "src/cli/developer.ts": 'export { test } from "vitest"; // sources-use-no-development-packages',
  "src/cli/tested.ts": 'export * from "../../test/aid.js"; // sources-use-no-tests',
  "test/aid.ts": "export const aid = 1;",
  "web/src/page.ts":
    'export { smaps } from "../../src/linux/memory/smaps.js"; // web-uses-model-only',
  "web/src/fine.ts": 'export { size } from "../../src/model/size.js";',
};

export async function checkImports() {
  return sum([
    await oneCheck(process.execPath, [cruiser, "--config", config, "src", "web", "test"]),
    verdicts([await plantedViolationsAreFound()]),
  ]);
}

async function plantedViolationsAreFound() {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-imports-"));
  try {
    for (const [name, text] of Object.entries(planted)) {
      mkdirSync(join(folder, dirname(name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const args = [cruiser, "--config", config, "--output-type", "json", "src", "web", "test"];
    const { output } = await capture(process.execPath, args, { cwd: folder });
    /** @type {{rule: {name: string}, from: string}[]} */
    const violations = JSON.parse(output).summary.violations;
    const found = violations.map(({ rule, from }) => `${from} breaks ${rule.name}`).sort();
    const expected = Object.entries(planted)
      .flatMap(([file, text]) =>
        [...text.matchAll(/\/\/ ([a-z-]+)/g)].map(([, rule]) => `${file} breaks ${rule}`),
      )
      .sort();
    if (found.join() === expected.join()) return true;
    say(`the check of import directions, in a tree where ${expected.join(", ")},`);
    say(`found ${found.join(", ")}`);
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
