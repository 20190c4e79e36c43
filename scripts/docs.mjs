/**
 * `npm run docs`: builds the docs site, static files with a built-in search, in dist/docs/site.
 * `npm run docs -- --serve [--port N]` builds it and serves it at http://localhost:4173.
 * Neither `npm ci` nor `npm run build` does this.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readOptions, runAsScript, SetupError, step } from "./command.mjs";
import { root, setUp } from "./setup.mjs";

const pagesFolder = join(root, "dist/docs/pages");
const siteFolder = join(root, "dist/docs/site");
const vitepress = join(root, "node_modules/vitepress/bin/vitepress.js");

/** @returns {Promise<{site: string, pages: string[]}>} the site's folder, and its pages from the repository's root */
export async function buildDocs() {
  // Loaded late: it needs node_modules.
  const { stage } = await import("./docs/stage.mjs");
  rmSync(join(root, "dist/docs"), { recursive: true, force: true });
  const { pages, sidebar } = stage(pagesFolder);
  mkdirSync(join(pagesFolder, ".vitepress"), { recursive: true });
  writeFileSync(
    join(pagesFolder, ".vitepress/config.mjs"),
    [
      `import { siteConfig } from ${JSON.stringify(join(root, "scripts/docs/site_config.mjs"))};`,
      `export default siteConfig(${JSON.stringify({ sidebar, outDir: siteFolder })});`,
      "",
    ].join("\n"),
  );
  await step(
    `docs site, ${pages.length} pages`,
    process.execPath,
    [vitepress, "build", pagesFolder],
    {
      cwd: root,
    },
  );
  return { site: siteFolder, pages };
}

await runAsScript(import.meta, async () => {
  const { values } = readOptions({
    options: { serve: { type: "boolean" }, port: { type: "string", default: "4173" } },
  });
  if (!/^\d{1,5}$/.test(values.port)) {
    throw new SetupError(`--port takes a number, not '${values.port}'`);
  }
  await setUp();
  await buildDocs();
  if (values.serve) {
    // Ctrl-C ends the server.
    await import("vitepress").then(({ serve }) =>
      serve({ root: pagesFolder, port: Number(values.port) }),
    );
    return;
  }
  process.stdout.write("the site is in dist/docs/site; to read it: npm run docs -- --serve\n");
});
