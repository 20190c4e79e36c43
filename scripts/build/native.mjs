/**
 * Builds dist/native/libtidemark.so, its variant for processes without static thread-local storage,
 * dist/native/libtidemark-calls.so and dist/native/tidemark-guard from agent/. It needs a C compiler but not make. The compiler's and
 * linker's flags are read from agent/Makefile.
 */
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { capture, SetupError, seconds } from "../command.mjs";
import { findCompiler, root } from "../setup.mjs";
import { filesUnder, unlessFresh } from "./fresh.mjs";

const folder = "dist/native";
const agent = join(root, "agent");
/** @type {readonly {name: string, flags: string[], link: string[]}[]} with variables of agent/Makefile */
const libraries = [
  { name: "libtidemark.so", flags: ["AGENT_FLAGS"], link: [] },
  {
    name: "libtidemark-keyed.so",
    flags: ["AGENT_FLAGS", "KEYED_FLAGS"],
    link: ["KEYED_LINK"],
  },
];
/** Files in dist/native. */
export const nativeFiles = [
  ...libraries.map(({ name }) => name),
  "libtidemark-calls.so",
  "tidemark-guard",
];
/** Makes the compiled files identical, whatever folder the clone is in. */
const anyFolder = `-ffile-prefix-map=${agent}=/tidemark/agent`;

export async function buildNative() {
  const compiler = findCompiler();
  const inputs = [
    ...["Makefile", "exports.map", "include", "layouts", "src", "guard", "calls"].map(
      (name) => `agent/${name}`,
    ),
    "scripts/build/native.mjs",
  ];
  const outputs = nativeFiles.map((name) => `${folder}/${name}`);
  await unlessFresh("native", { inputs, settings: compiler, outputs }, async () => {
    const begun = Date.now();
    process.stdout.write(`agent: ${basename(compiler)} -> ${folder}/ ... `);
    mkdirSync(join(root, folder), { recursive: true });
    // In the same file system, so that the finished files can be renamed into place: a program that has
    // the old library mapped keeps it intact.
    const work = mkdtempSync(join(root, folder, "making-"));
    try {
      await compileAll(compiler, work);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
    process.stdout.write(`${seconds(Date.now() - begun)}\n`);
  });
}

/**
 * The library with the timers of agent/src/core/measure.c.
 * @param {string} work folder for it and for intermediate files
 * @returns {Promise<string>} its path
 */
export async function compileMeasured(work) {
  const measured = { name: "libtidemark-measured.so", flags: ["AGENT_FLAGS"], link: [] };
  await compileLibraries(findCompiler(), work, [measured], ["-DTM_MEASURE"]);
  return join(work, measured.name);
}

/**
 * @param {string} compiler @param {string} work folder for the libraries and for intermediate files
 * @param {typeof libraries} wanted @param {string[]} more flags
 */
async function compileLibraries(compiler, work, wanted, more = []) {
  const sources = sourcesIn("agent/src", /\.[cS]$/);
  const object = (/** @type {string} */ name, /** @type {string} */ source) =>
    join(work, `${name}-${source.replaceAll("/", "-")}.o`);
  const all = wanted.flatMap(({ name, flags: names }) =>
    sources.map((source) => [
      ...[...names.flatMap(makeFlags), ...more, anyFolder],
      ...["-c", "-o", object(name, source), source],
    ]),
  );
  await inParallel(all, (args) => compile(compiler, args));
  for (const { name, link } of wanted) {
    const objects = sources.map((source) => object(name, source));
    await compile(compiler, [
      ...[...makeFlags("AGENT_LINK"), "-o", join(work, name), ...objects],
      ...link.flatMap(makeFlags),
    ]);
  }
}

/** The words of a variable of agent/Makefile. @param {string} name */
function makeFlags(name) {
  const value = makeVariables(readFileSync(join(agent, "Makefile"), "utf8")).get(name);
  if (value === undefined) {
    throw new SetupError(`agent/Makefile has no variable ${name}`);
  }
  return value.split(/\s+/).filter((word) => word !== "");
}

/** @param {string} compiler @param {string} work folder for intermediate files */
async function compileAll(compiler, work) {
  await compileLibraries(compiler, work, libraries);
  const others = [
    { name: "libtidemark-calls.so", flags: "CALLS_FLAGS", sources: "agent/calls" },
    { name: "tidemark-guard", flags: "GUARD_FLAGS", sources: "agent/guard" },
  ];
  for (const { name, flags, sources } of others) {
    await compile(compiler, [
      ...[...makeFlags(flags), anyFolder],
      ...["-o", join(work, name), ...sourcesIn(sources, /\.c$/)],
    ]);
  }
  for (const name of nativeFiles) {
    renameSync(join(work, name), join(root, folder, name));
  }
}

/** @param {string} path @param {RegExp} pattern @returns {string[]} from the folder agent/ */
function sourcesIn(path, pattern) {
  return filesUnder(path)
    .filter((file) => pattern.test(file))
    .map((file) => file.slice("agent/".length));
}

/** @param {string} compiler @param {string[]} args */
async function compile(compiler, args) {
  const { status, output } = await capture(compiler, args, { cwd: agent });
  if (status === 0) {
    return;
  }
  process.stderr.write(`\n${output}`);
  throw new SetupError(
    /(stdio|stdlib|features|unistd)\.h: No such file/.test(output)
      ? `${compiler} has no C library headers; install them (Debian, Ubuntu: apt-get install libc6-dev)`
      : `failed: ${[compiler, ...args].join(" ")}`,
  );
}

/**
 * @template T
 * @param {T[]} items
 * @param {(item: T, index: number) => Promise<void>} work
 */
async function inParallel(items, work) {
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      const item = items[index];
      if (item !== undefined) {
        await work(item, index);
      }
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: availableParallelism() }, worker));
  const failure = ends.find((end) => end.status === "rejected");
  if (failure?.status === "rejected") {
    throw failure.reason;
  }
}

/**
 * The simple variables (`NAME := words`) of a makefile, references among them replaced.
 * @param {string} text
 * @returns {Map<string, string>}
 */
export function makeVariables(text) {
  const variables = new Map();
  for (const line of text.replace(/\\\n/g, " ").split("\n")) {
    const [, name, value = ""] = /^(\w+)\s*:=\s*(.*)$/.exec(line) ?? [];
    if (name === undefined) {
      continue;
    }
    variables.set(
      name,
      value.replace(/\$\((\w+)\)/g, (_, reference) => variables.get(reference) ?? ""),
    );
  }
  return variables;
}
