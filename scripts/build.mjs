/**
 * `npm run build`: agent/ -> dist/native, src/ -> dist -> dist/program, web/ -> dist/web/index.html.
 * Does only what has changed since the last time.
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
  await joinProgram();
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

/**
 * What bin/tidemark starts: the modules of dist/ and the libraries in a few files, for to load them one
 * by one costs each command 0.1 s of CPU. The folder lies as deep as a room, so that what a module finds
 * beside itself (`new URL("../../...", import.meta.url)`) is there from here, too.
 */
async function joinProgram() {
  const inputs = ["src", "tsconfig.json", "package-lock.json", "scripts/build.mjs"];
  await unlessFresh("program", { inputs, outputs: ["dist/program/main.js"] }, async () => {
    console.log("esbuild: dist/ -> dist/program/");
    rmSync(join(root, "dist/program"), { recursive: true, force: true });
    const { build: bundle } = await import("esbuild");
    await bundle({
      entryPoints: [
        "cli/main.js",
        "cpython/heap/share_worker.js",
        "record/holder_worker.js",
        "record/census_worker.js",
      ].map((path) => join(root, "dist", path)),
      outdir: join(root, "dist/program"),
      entryNames: "[name]",
      bundle: true,
      splitting: true,
      format: "esm",
      platform: "node",
      target: "node20",
      // Large, native, and loaded by two formats alone; and what a library loads for its own developers.
      external: ["@duckdb/node-api", "react-devtools-core"],
      define: { "process.env.NODE_ENV": '"production"' },
      // Of the libraries, those in CommonJS ask for Node's modules by `require`.
      banner: {
        js: 'import * as banner from "node:module"; const require = banner.createRequire(import.meta.url);',
      },
      logLevel: "warning",
    });
  });
}

/** Removes what an earlier build made of sources that are gone: imports of it must fail. */
function removeOrphans() {
  for (const made of filesUnder("dist")) {
    const [, source] = /^dist\/((?!web\/|program\/).*?)\.(?:js|js\.map|d\.ts)$/.exec(made) ?? [];
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
