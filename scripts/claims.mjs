/**
 * `npm run claims [-- NAME...] [--python PATH] [--write]`: runs the scripts of examples/claims and prints what they
 * measure. `--write` puts the output into the blocks of docs/claims.md, and updates its line about the machine. A
 * script fails if its figures do not confirm the page. By default it uses the Python of the test environment, which has
 * NumPy, pandas and torch; if there is none, `python3`.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { capture, readOptions, runAsScript, SetupError } from "./command.mjs";
import { readEnvironment } from "./environment.mjs";
import { root } from "./setup.mjs";

const folder = join(root, "examples/claims");
const page = join(root, "docs/claims.md");
/** A script's exit code if a package that it needs is not installed. */
const SKIPPED = 77;

/** Names of the scripts, without `.py`. @returns {string[]} */
export function claimNames() {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".py") && file !== "figures.py")
    .map((file) => file.slice(0, -3))
    .sort();
}

/**
 * @param {string} name
 * @param {string} python
 * @returns {Promise<{output: string, shown: boolean, skipped: boolean}>}
 */
export async function runClaim(name, python) {
  const { status, output } = await capture(python, [join(folder, `${name}.py`)], { cwd: root });
  return { output: output.trimEnd(), shown: status === 0, skipped: status === SKIPPED };
}

/** The output of a script as the page quotes it; undefined: the page does not. @param {string} name */
export function quotedOutput(name) {
  return blockOf(name).exec(readFileSync(page, "utf8"))?.groups?.output?.trimEnd();
}

/** The Python with the packages that a claim needs. @param {string} name @returns {string} */
export function pythonOf(name) {
  try {
    const { packagesPython, torchPython } = readEnvironment();
    return (
      (name === "numpy_tracemalloc" ? torchPython : packagesPython) ?? packagesPython ?? "python3"
    );
  } catch {
    return "python3";
  }
}

/** @param {string} name */
function blockOf(name) {
  return new RegExp(
    `(?<head>\`\`\`\\n\\$ python examples/claims/${name}\\.py\\n)(?<output>[\\s\\S]*?)(?=\`\`\`)`,
  );
}

/** @param {string} name @param {string} output */
function write(name, output) {
  const text = readFileSync(page, "utf8");
  if (!blockOf(name).test(text)) {
    throw new SetupError(
      `docs/claims.md has no block that begins: $ python examples/claims/${name}.py`,
    );
  }
  writeFileSync(
    page,
    text.replace(blockOf(name), (_, head) => `${head}${output}\n`),
  );
}

/** @param {string} python of most scripts */
async function writeMachine(python) {
  const { output } = await capture(python, ["--version"]);
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const processor = `${cpus().length} x ${cpus()[0]?.model.trim()}`;
  const day = new Date().toISOString().slice(0, 10);
  const line = `${processor}, ${memory}, Linux ${release()}, ${output.trim()}, ${day}`;
  const text = readFileSync(page, "utf8");
  writeFileSync(
    page,
    text.replace(/(<!-- machine -->\n).*?(\n<!-- end machine -->)/s, `$1${line}$2`),
  );
}

await runAsScript(import.meta, async () => {
  const { values, positionals } = readOptions({
    allowPositionals: true,
    options: { python: { type: "string" }, write: { type: "boolean" } },
  });
  const all = claimNames();
  const unknown = positionals.filter((name) => !all.includes(name));
  if (unknown.length > 0) {
    throw new SetupError(`no claim ${unknown.join(", ")}; there are ${all.join(", ")}`);
  }
  if (values.python?.includes("/") && !existsSync(values.python)) {
    throw new SetupError(`no such Python: ${values.python}`);
  }
  const counts = { shown: 0, failed: 0, skipped: 0 };
  for (const name of positionals.length > 0 ? positionals : all) {
    const { output, shown, skipped } = await runClaim(name, values.python ?? pythonOf(name));
    process.stdout.write(`\n== ${name}\n${output}\n`);
    counts[skipped ? "skipped" : shown ? "shown" : "failed"] += 1;
    if (values.write && shown) {
      write(name, output);
    }
  }
  if (values.write) {
    await writeMachine(values.python ?? pythonOf(""));
  }
  process.stdout.write(
    `\n${counts.shown} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`,
  );
  return counts.failed === 0 ? 0 : 1;
});
