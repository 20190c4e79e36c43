/**
 * `npm run generate`: writes the sources that are made from other sources; each part is a file of
 * scripts/generate/. A test checks that nothing is out of date.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { buildSources, joinProgram } from "./build.mjs";
import { runAsScript } from "./command.mjs";
import { root, setUp } from "./setup.mjs";

/**
 * @param {{write: boolean}} options
 * @returns {Promise<{path: string, changed: boolean}[]>} every generated file, from the root
 */
export async function generate({ write }) {
  const fromSources = compare(await sourceParts(), write);
  if (write) {
    await buildSources();
    await joinProgram();
  }
  return [...fromSources, ...compare(await builtParts(), write)];
}

/** @returns {Promise<Map<string, string>>} path from the root -> what the file must hold */
async function sourceParts() {
  // Loaded late, as below: the parts need node_modules.
  const { commandList } = await import("./generate/command_list.mjs");
  const { errorPage } = await import("./generate/error_page.mjs");
  const { folderIndexes } = await import("./generate/folder_indexes.mjs");
  const { jsonSchemas } = await import("./generate/json_schemas.mjs");
  const { phraseTable } = await import("./generate/phrase_table.mjs");
  const { protocolBuffers } = await import("./generate/protocol_buffers.mjs");
  const { segmentLayout, segmentLayoutPath } = await import("./generate/segment_layout.mjs");
  const layout = new Map([[relative(root, segmentLayoutPath), segmentLayout()]]);
  const sources = [...commandList(), ...folderIndexes()];
  const messages = await protocolBuffers();
  return new Map([
    ...sources,
    ...layout,
    ...messages,
    ...jsonSchemas(),
    ...errorPage(),
    ...phraseTable(),
  ]);
}

/** What is made by running the built program. */
async function builtParts() {
  const { advicePage } = await import("./generate/advice_page.mjs");
  const { commandPages } = await import("./generate/command_pages.mjs");
  const { lintPage } = await import("./generate/lint_page.mjs");
  const { policySchema } = await import("./generate/policy_schema.mjs");
  return new Map([
    ...(await commandPages()),
    ...(await advicePage()),
    ...(await lintPage()),
    ...(await policySchema()),
  ]);
}

/** @param {Map<string, string>} files @param {boolean} write */
function compare(files, write) {
  return [...files].map(([path, text]) => {
    const changed = textOf(join(root, path)) !== text;
    if (changed && write) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    return { path, changed };
  });
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
