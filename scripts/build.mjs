/**
 * `npm run build`: agent/ -> dist/native, src/ -> dist, web/ -> dist/web/index.html. Does only what
 * has changed since the last time.
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { filesUnder, unlessFresh } from "./build/fresh.mjs";
import { buildNative } from "./build/native.mjs";
import { runAsScript, step } from "./command.mjs";
import { root, setUp } from "./setup.mjs";

export async function build() {
  await setUp();
  await buildNative();
  await buildSources();
  await buildPage();
}

export async function buildSources() {
  const inputs = ["src", "tsconfig.json", "package-lock.json"];
  const outputs = ["dist/cli/main.js"];
  await unlessFresh("sources", { inputs, outputs }, async () => {
    removeOrphans();
    await step("typescript: src/ -> dist/", process.execPath, [tool("typescript/bin/tsc")], {
      cwd: root,
    });
  });
}

/** Removes what an earlier build made of sources that are gone: imports of it must fail. */
function removeOrphans() {
  for (const made of filesUnder("dist")) {
    const [, source] = /^dist\/((?!web\/).*?)\.(?:js|js\.map|d\.ts)$/.exec(made) ?? [];
    const gone = [".ts", ".tsx"].every((end) => !existsSync(join(root, "src", `${source}${end}`)));
    if (source !== undefined && gone) {
      rmSync(join(root, made));
    }
  }
}

async function buildPage() {
  const inputs = ["web", "src/model", "package-lock.json"];
  const outputs = ["dist/web/index.html"];
  await unlessFresh("page", { inputs, outputs }, async () => {
    await step(
      "vite: web/ -> dist/web/",
      process.execPath,
      [tool("vite/bin/vite.js"), "build", "web"],
      {
        cwd: root,
      },
    );
  });
}

/** @param {string} path @returns {string} */
function tool(path) {
  return join(root, "node_modules", path);
}

await runAsScript(import.meta, build);
