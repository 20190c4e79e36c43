/**
 * `npm run bench -- NAME [OPTIONS]`: runs bench/NAME.mjs on a built tree. Results go to docs/benchmarks.md.
 * The comment at the head of a benchmark describes what it measures and its options; `--help` prints it.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { runAsScript, SetupError } from "./command.mjs";
import { root } from "./setup.mjs";

/** Files of bench/ that benchmarks import; they are not benchmarks themselves. */
const parts = new Set([
  "environment",
  "fleet_copies",
  "fleet_data",
  "fleet_pages",
  "gpu_pages",
  "heap_once",
  "machine",
  "process_cost",
  "results",
  "served",
  "soak_cycles",
  "statistics",
  "tools",
]);
const folder = join(root, "bench");
const names = readdirSync(folder)
  .filter((file) => file.endsWith(".mjs"))
  .map((file) => file.slice(0, -4))
  .filter((name) => !parts.has(name));

/** The comment at the head of a benchmark. @param {string} name */
function headOf(name) {
  const [, comment = ""] =
    /^\/\*\*(.*?)\*\//s.exec(readFileSync(join(folder, `${name}.mjs`), "utf8")) ?? [];
  return comment.replaceAll(/^ \* ?/gm, "").trim();
}

function usage() {
  const width = Math.max(...names.map(({ length }) => length));
  const lines = names.map((name) => {
    const [sentence = ""] = headOf(name)
      .replaceAll(/\s+/g, " ")
      .split(/[:.?](?= )/);
    return `  ${name.padEnd(width)}  ${sentence}`;
  });
  return [
    "usage: npm run bench -- NAME [OPTIONS]",
    "",
    ...lines,
    "",
    "  npm run bench -- overhead --help",
    "  npm run bench -- overhead --tools tidemark --only json_service --pairs 3",
  ].join("\n");
}

/** Node's own message for an unknown option, or one without a value. @param {unknown} error */
const isOptionError = (error) =>
  error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");

await runAsScript(import.meta, async () => {
  // The benchmark reads the arguments after its name.
  const [name] = process.argv.splice(2, 1);
  if (name === "--help" || name === "-h") {
    console.log(usage());
    return 0;
  }
  if (name === undefined || !names.includes(name)) {
    throw new SetupError(
      `${name === undefined ? "which benchmark?" : `no benchmark ${name}`}\n${usage()}`,
    );
  }
  if (process.argv.slice(2).some((word) => word === "--help" || word === "-h")) {
    console.log(headOf(name));
    return 0;
  }
  await build();
  if (!existsSync(join(root, "dist/native/libtidemark.so"))) {
    throw new Error("the build left no agent");
  }
  try {
    await import(pathToFileURL(join(folder, `${name}.mjs`)).href);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    throw isOptionError(error)
      ? new SetupError(`${/** @type {Error} */ (error).message}\n${headOf(name)}`)
      : error;
  }
});
