/**
 * The files of an installation, the same for pip and for npm:
 *
 *     package.json          name, version; how the program finds its version
 *     bin/tidemark          starts the program
 *     dist/program/         the program, its libraries joined in
 *     dist/web/             the report's page and the pages of a server
 *     dist/native/          agent and guard (npm: a package of their own)
 *     python/tidemark/      the Python package that a running program gets
 *     grammars/             the grammar of Python that `lint` parses with, as WebAssembly
 *     node_modules/         three libraries whose WebAssembly is loaded from a file
 *     THIRD_PARTY_LICENSES  of everything that is bundled
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { filesUnder } from "../build/fresh.mjs";
import { root } from "../setup.mjs";

/**
 * @typedef {object} PackageFile
 * @property {string} path in the package
 * @property {string} [source] absolute path of the file with its content
 * @property {string} [text] its content, where it has no source
 * @property {boolean} [executable]
 */

/** Libraries that stay folders in node_modules, because they load WebAssembly files from their own folder. */
export const unjoined = ["gecko-profiler-demangle", "iced-x86", "web-tree-sitter"];
/** Libraries of the page; package.json lists them for development, because the build bundles them. */
const ofThePage = [
  "@tanstack/react-query",
  "@tanstack/react-table",
  "@tanstack/react-virtual",
  "d3-hierarchy",
  "react-dom",
  "uplot",
  "wouter",
];

/** @type {{version: string, description: string, license: string, dependencies: Record<string, string>}} */
export const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** @returns {PackageFile[]} everything but package.json and the native parts */
export function payload() {
  const files = [
    ...filesUnder("dist/program"),
    ...filesUnder("dist/web"),
    ...pythonFiles("tidemark"),
    ...filesUnder("grammars"),
  ];
  const libraries = unjoined.flatMap((name) => runTimeFiles(`node_modules/${name}`));
  return [
    { path: "bin/tidemark", source: join(root, "bin/tidemark"), executable: true },
    ...[...files, ...libraries, "LICENSE"].map((path) => ({ path, source: join(root, path) })),
    { path: "THIRD_PARTY_LICENSES", text: thirdPartyLicenses([...runTimeRoots(), ...ofThePage]) },
  ];
}

/** @param {string} name a package in python/ @returns {string[]} from the repository's root */
export function pythonFiles(name) {
  return filesUnder(`python/${name}`).filter((path) => !path.includes("__pycache__"));
}

/** @param {string} folder of node_modules @returns {string[]} its files that a program uses */
export function runTimeFiles(folder) {
  return filesUnder(folder).filter(
    (path) =>
      !/\.d\.[mc]?ts$|\.map$|\/README\.md$|\/tests?\/|\/web-tree-sitter\/(?:debug\/|.*\.cjs$)/.test(
        path,
      ),
  );
}

function runTimeRoots() {
  // DuckDB is a separate package.
  return Object.keys(manifest.dependencies).filter((name) => name !== "@duckdb/node-api");
}

/**
 * @param {string[]} roots names of npm packages
 * @returns {string} the licences of these packages and all their dependencies, by name
 */
export function thirdPartyLicenses(roots) {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  const found = new Set();
  const visit = (/** @type {string} */ name, /** @type {string} */ from) => {
    const path = resolve(lock, name, from);
    // Type packages contain no code; native parts for other platforms are not installed.
    if (path === undefined || name.startsWith("@types/") || found.has(path)) {
      return;
    }
    found.add(path);
    for (const other of Object.keys(lock[path].dependencies ?? {})) {
      visit(other, path);
    }
  };
  for (const name of roots) {
    visit(name, "");
  }
  return [...found]
    .sort()
    .map((path) => licenseOf(path))
    .join("\n");
}

/** Resolves as Node does: the nearest node_modules upwards.
 * @param {Record<string, object>} lock @param {string} name @param {string} from
 * @returns {string | undefined} */
function resolve(lock, name, from) {
  const candidate = `${from ? `${from}/` : ""}node_modules/${name}`;
  if (candidate in lock) {
    return candidate;
  }
  if (from === "") {
    return undefined;
  }
  return resolve(lock, name, from.slice(0, from.lastIndexOf("node_modules/")).replace(/\/$/, ""));
}

/** @param {string} path of an installed package */
function licenseOf(path) {
  const { name, version, license, author, homepage, repository } = JSON.parse(
    readFileSync(join(root, path, "package.json"), "utf8"),
  );
  const texts = readdirSync(join(root, path))
    .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
    .sort()
    .map((file) => readFileSync(join(root, path, file), "utf8").trim());
  if (texts.length === 0) {
    const origin = homepage ?? repository?.url ?? repository;
    texts.push(
      `Author: ${author?.name ?? author}; ${origin}. The package has no text of its license.`,
    );
  }
  return `${"=".repeat(72)}\n${name} ${version} (${license})\n\n${texts.join("\n\n")}\n`;
}
