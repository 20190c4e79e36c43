/**
 * `npm run generate`: writes the sources that are made from other sources; each part is a file of
 * scripts/generate/. A test checks that nothing is out of date.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { runAsScript } from "./command.mjs";
import { root, setUp } from "./setup.mjs";

/**
 * @param {{write: boolean}} options
 * @returns {Promise<{path: string, changed: boolean}[]>} every generated file, from the root
 */
export async function generate({ write }) {
  const files = await generated();
  return [...files].map(([path, text]) => {
    const changed = textOf(join(root, path)) !== text;
    if (changed && write) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    return { path, changed };
  });
}

/** @returns {Promise<Map<string, string>>} path from the root -> what the file must hold */
async function generated() {
  // Loaded late: the parts need node_modules.
  const { jsonSchemas } = await import("./generate/json-schemas.mjs");
  const { segmentLayout, segmentLayoutPath } = await import("./generate/segment-layout.mjs");
  return new Map([...jsonSchemas(), [relative(root, segmentLayoutPath), segmentLayout()]]);
}

/** @param {string} path @returns {string | undefined} */
function textOf(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

await runAsScript(import.meta, async () => {
  await setUp();
  for (const { path, changed } of await generate({ write: true })) {
    process.stdout.write(`${changed ? "wrote" : "kept"} ${path}\n`);
  }
});
