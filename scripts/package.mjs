/**
 * `npm run package`: builds, and writes the published packages to dist/packages:
 *
 *     tidemark_profiler-V-py3-none-manylinux_2_28_x86_64.whl          the whole tool, for pip
 *     tidemark_profiler_server-V-py3-none-manylinux_2_28_x86_64.whl   DuckDB: tidemark-profiler[server]
 *     tidemark-profiler-V.tgz                                         the tool without native parts, for npm
 *     tidemark-profiler-linux-x64-V.tgz                               its native parts, for npm
 *
 * The same sources and tools give the same bytes, in any folder.
 */
import { mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { unlessFresh } from "./build/fresh.mjs";
import { build } from "./build.mjs";
import { runAsScript } from "./command.mjs";
import { stripNative } from "./package/native.mjs";
import { writeNpmPackages } from "./package/npm_packages.mjs";
import { writeWheels } from "./package/wheels.mjs";
import { root } from "./setup.mjs";

const folder = "dist/packages";
const platform = "py3-none-manylinux_2_28_x86_64";

/** @returns {{wheel: string, serverWheel: string, npmMain: string, npmNative: string}} absolute paths */
export function packageFiles() {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const path = (/** @type {string} */ name) => join(root, folder, name);
  return {
    wheel: path(`tidemark_profiler-${version}-${platform}.whl`),
    serverWheel: path(`tidemark_profiler_server-${version}-${platform}.whl`),
    npmMain: path(`tidemark-profiler-${version}.tgz`),
    npmNative: path(`tidemark-profiler-linux-x64-${version}.tgz`),
  };
}

export async function makePackages() {
  await build();
  const inputs = [
    ...["agent", "src", "web", "python", "bin", "scripts/package", "scripts/package.mjs"],
    ...["scripts/build", "scripts/build.mjs", "package.json", "package-lock.json"],
    ...["README.md", "LICENSE", "grammars"],
  ];
  const files = Object.values(packageFiles());
  const outputs = files.map((path) => path.slice(root.length + 1));
  const settings = process.env.SOURCE_DATE_EPOCH ?? "";
  await unlessFresh("packages", { inputs, settings, outputs }, async () => {
    // Written next to its final path and renamed, so that a test that reads the older file is not disturbed.
    const work = join(root, `${folder}.${process.pid}`);
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    try {
      const native = await stripNative(join(work, "native"));
      await writeWheels(work, native, platform);
      await writeNpmPackages(work, native);
      mkdirSync(join(root, folder), { recursive: true });
      for (const output of outputs) {
        renameSync(join(work, output.slice(folder.length + 1)), join(root, output));
      }
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
  return packageFiles();
}

await runAsScript(import.meta, async () => {
  const files = await makePackages();
  process.stdout.write(`${Object.values(files).join("\n")}\n`);
});
