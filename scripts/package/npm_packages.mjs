/** The npm packages: `tidemark-profiler`, and its native parts as an optional package for the platform. */
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { capture, SetupError } from "../command.mjs";
import { npm, root } from "../setup.mjs";
import { readmeWithoutLinks } from "./long_description.mjs";
import { manifest, payload, unjoined } from "./payload.mjs";

/** @typedef {import("./payload.mjs").PackageFile} PackageFile */

const nativeName = "@tidemark-profiler/linux-x64";

/**
 * @param {string} folder where the tarballs go
 * @param {{name: string, path: string}[]} native stripped files
 */
export async function writeNpmPackages(folder, native) {
  const { version, description, license, dependencies } = manifest;
  const common = { version, license };
  await pack(folder, [
    ...payload(),
    { path: "README.md", text: readmeWithoutLinks() },
    manifestFile({
      name: "tidemark-profiler",
      description,
      ...common,
      type: "module",
      engines: { node: ">=20" },
      bin: { tidemark: "bin/tidemark", "tidemark-profiler": "bin/tidemark" },
      dependencies: Object.fromEntries(unjoined.map((name) => [name, dependencies[name]])),
      bundleDependencies: unjoined,
      optionalDependencies: {
        [nativeName]: version,
        "@duckdb/node-api": dependencies["@duckdb/node-api"],
      },
    }),
  ]);
  await pack(folder, [
    ...native.map(({ name, path }) => ({ path: name, source: path, executable: true })),
    { path: "LICENSE", source: join(root, "LICENSE") },
    {
      path: "README.md",
      text: "The agent and the guard of tidemark-profiler, for Linux x86-64 with glibc 2.28 or newer.\n",
    },
    manifestFile({
      name: nativeName,
      description: "Native parts of tidemark-profiler for Linux x86-64",
      ...common,
      os: ["linux"],
      cpu: ["x64"],
      libc: ["glibc"],
      preferUnplugged: true,
    }),
  ]);
}

/** @param {object} content @returns {PackageFile} */
function manifestFile(content) {
  return { path: "package.json", text: `${JSON.stringify(content, null, 2)}\n` };
}

/** @param {string} folder @param {PackageFile[]} files */
async function pack(folder, files) {
  const manifestText = files.find(({ path }) => path === "package.json")?.text ?? "{}";
  const { name } = JSON.parse(manifestText);
  const staging = join(folder, "npm", name);
  for (const { path, source, text = "", executable = false } of files) {
    const target = join(staging, path);
    mkdirSync(dirname(target), { recursive: true });
    if (source === undefined) {
      writeFileSync(target, text);
    } else {
      copyFileSync(source, target);
    }
    chmodSync(target, executable ? 0o755 : 0o644);
  }
  const { status, output } = await capture(
    ...npm("pack", "--ignore-scripts", "--pack-destination", folder, staging),
    { cwd: folder },
  );
  if (status !== 0) {
    throw new SetupError(`npm pack ${name}: ${output.trim()}`);
  }
}
