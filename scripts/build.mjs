/**
 * `npm run build`: agent/ -> dist/native, src/ -> dist -> dist/program, web/ -> dist/web/.
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

/** The program, its worker threads, and the process that a collector starts. */
const programEntries = [
  "cli/main.js",
  "collect/captures/capture_process.js",
  "cpython/heap/census/share_worker.js",
  "holders/holder_worker.js",
  "record/census/census_worker.js",
];
/** Large or native libraries that only two formats or `lint` load, and what a library loads for its own developers. */
const loadedWhenAsked = ["@duckdb/node-api", "react-devtools-core", "web-tree-sitter"];

/**
 * What bin/tidemark starts: the modules of dist/ and the libraries bundled into a few files, because loading them
 * one by one costs each command 0.1 s of CPU. The folder is as deep as a room, so that paths relative to a module
 * (`new URL("../../...", import.meta.url)`) also work from here.
 *
 * A module's `const` stays `const`: esbuild, which is faster, turns them into variables, and a heap scan, whose
 * tables are such constants, then takes a tenth longer.
 */
export async function joinProgram() {
  const inputs = ["src", "tsconfig.json", "package-lock.json", "scripts/build.mjs"];
  await unlessFresh("program", { inputs, outputs: ["dist/program/main.js"] }, async () => {
    console.log("vite: dist/ -> dist/program/");
    const { build: joinModules } = await import("vite");
    await joinModules({
      configFile: false,
      root,
      logLevel: "warn",
      publicDir: false,
      define: { "process.env.NODE_ENV": '"production"' },
      ssr: { noExternal: true, external: loadedWhenAsked },
      build: {
        ssr: true,
        target: "node20",
        outDir: "dist/program",
        rollupOptions: {
          // Our modules have no side effects: of a room's index.ts, only what is used is loaded.
          treeshake: { moduleSideEffects: (id) => !id.startsWith(join(root, "dist/")) },
          input: programEntries.map((path) => `dist/${path}`),
          external: loadedWhenAsked,
          // Comments in libraries meant for other bundlers; Rollup merely drops them.
          onwarn(warning, warn) {
            if (warning.code !== "INVALID_ANNOTATION") {
              warn(warning);
            }
          },
          // A file costs a command half a millisecond to load, however small it is: smaller ones are joined.
          output: {
            entryFileNames: "[name].js",
            chunkFileNames: "[name]-[hash].js",
            experimentalMinChunkSize: 20_000,
          },
        },
      },
    });
  });
}

/** Removes the output of deleted sources, so that imports of it fail. */
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
  const inputs = ["web", "src/model", "src/plan", "package-lock.json"];
  const outputs = ["index.html", "plan.html", "gpu.html", "fleet/index.html"].map(
    (name) => `dist/web/${name}`,
  );
  await unlessFresh("page", { inputs, outputs }, async () => {
    const vite = [tool("vite/bin/vite.js"), "build"];
    await step("vite: web/ -> dist/web/", process.execPath, [...vite, "web"], { cwd: root });
    // The others after the report, because building the report empties the folder.
    for (const mode of ["plan", "gpu"]) {
      const page = [...vite, "web", "--mode", mode];
      await step(`vite: web/ -> dist/web/${mode}.html`, process.execPath, page, { cwd: root });
    }
    const fleet = [...vite, "--config", "web/vite.fleet.config.ts"];
    await step("vite: web/fleet/ -> dist/web/fleet/", process.execPath, fleet, { cwd: root });
  });
}

/** @param {string} path @returns {string} */
function tool(path) {
  return join(root, "node_modules", path);
}

await runAsScript(import.meta, build);
