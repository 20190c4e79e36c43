/**
 * Compares planned with measured memory: `npm run bench -- plan [--python PYTHON] [--library PYTHON] [--only NAME]`
 *
 * Without options: the peaks that other projects published (bench/plan_rows.json, each with its source and the options
 * that plan it), written to docs/plan.md. With `--python`, an interpreter with torch and a GPU: trains the small models
 * of test/data/plan/small on the device and compares what torch.cuda counts. With `--library`, an interpreter with torch
 * and transformers: builds the models of test/data/plan/library with transformers on the CPU and compares parameters and
 * the tensors that autograd saves; `--only` names one of them. Keys without a mask are not repeated there: GQA is planned
 * with --attention flash.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { markdownTable, writeResults } from "./results.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: options } = parseArgs({
  options: {
    python: { type: "string" },
    library: { type: "string" },
    only: { type: "string" },
  },
});
const GIB = 2 ** 30;

/** @typedef {{bytes: number, low: number, high: number}} Figure */

/** The plan's three figures. @param {string} path @param {string} words @returns {Record<string, Figure>} */
function planned(path, words) {
  const args = [join(root, "dist/program/main.js"), "plan", path, "--json", ...words.split(" ")];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8", maxBuffer: 2 ** 26 }))
    .memory;
}

/** @param {number} error */
const percent = (error) => `${error >= 0 ? "+" : "−"}${Math.abs(100 * error).toFixed(1)} %`;

/** @param {{id: string, what: string, kind: string, measured: number, figure: Figure, source: string}[]} rows */
function summary(rows) {
  const errors = rows.map(({ figure, measured }) => Math.abs(figure.bytes / measured - 1));
  const within = rows.filter(
    ({ figure, measured }) => figure.low <= measured && measured <= figure.high,
  ).length;
  const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
  return `${rows.length} rows: mean absolute error ${(100 * mean).toFixed(1)} %, largest ${(100 * Math.max(...errors)).toFixed(1)} %, ${within} within the interval.`;
}

function published() {
  const models = JSON.parse(readFileSync(join(root, "test/data/plan/models.json"), "utf8"));
  const rows = JSON.parse(readFileSync(join(root, "bench/plan_rows.json"), "utf8"));
  const folder = mkdtempSync(join(tmpdir(), "tidemark-plan-"));
  try {
    const made = rows.map(
      (
        /** @type {{id: string, model: string, words: string, measuredGib: number, kind: string, source: string}} */ row,
      ) => {
        const path = join(folder, `${row.model}.json`);
        writeFileSync(path, JSON.stringify(models[row.model].config));
        const figure = /** @type {Figure} */ (planned(path, row.words)[row.kind]);
        return {
          ...row,
          what: `${row.model} \`${row.words}\``,
          measured: row.measuredGib * GIB,
          figure,
        };
      },
    );
    const table = markdownTable(
      ["row", "plan", "figure", "measured GiB", "planned GiB", "interval", "error", "source"],
      made.map(
        (/** @type {ReturnType<typeof Object>} */ { id, what, kind, measured, figure, source }) => [
          id,
          what,
          kind,
          (measured / GIB).toFixed(2),
          (figure.bytes / GIB).toFixed(2),
          `${(figure.low / GIB).toFixed(1)} to ${(figure.high / GIB).toFixed(1)}`,
          percent(figure.bytes / measured - 1),
          source,
        ],
      ),
    );
    writeResults("plan", `${summary(made)}\n\n${table}`, "plan.md");
    console.log(summary(made));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} python */
function onDevice(python) {
  const folder = join(root, "test/data/plan/small");
  for (const file of readdirSync(folder)) {
    const path = join(folder, file);
    const args = [join(root, "test/plan/families.py"), path, "sdpa", "8", "512", "cuda"];
    const measured = JSON.parse(execFileSync(python, args, { encoding: "utf8" }));
    const memory = planned(path, "--batch 8 --seq 512 --dtype fp32 --gpu h100");
    const rows = /** @type {const} */ (["allocated", "reserved"]).map(
      (kind) =>
        `${kind} ${(measured[kind] / 2 ** 20).toFixed(0)} MiB, planned ${((memory[kind]?.bytes ?? 0) / 2 ** 20).toFixed(0)} MiB (${percent((memory[kind]?.bytes ?? 0) / measured[kind] - 1)})`,
    );
    console.log(`${file}: ${rows.join("; ")}`);
  }
}

/** @param {string} path @param {string} words @returns {{model: {parameters: number}, savedActivations: {bytes: number}[]}} */
function document(path, words) {
  const args = [join(root, "dist/program/main.js"), "plan", path, "--json", ...words.split(" ")];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8", maxBuffer: 2 ** 26 }));
}

/** @param {string} python */
function withLibrary(python) {
  const folder = join(root, "test/data/plan/library");
  for (const file of readdirSync(folder)) {
    if (options.only !== undefined && file !== `${options.only}.json`) {
      continue;
    }
    const path = join(folder, file);
    for (const attention of ["eager", "sdpa"]) {
      const script = join(root, "bench/plan_library.py");
      const ran = spawnSync(python, [script, path, attention, "2", "192"], { encoding: "utf8" });
      if (ran.status !== 0) {
        console.log(`${file} ${attention}: ${ran.stderr.trim().split("\n").at(-1)?.slice(0, 120)}`);
        continue;
      }
      const measured = JSON.parse(ran.stdout);
      const kernel = attention === "sdpa" ? "flash" : attention;
      const plan = document(path, `--dtype fp32 --batch 2 --seq 192 --attention ${kernel}`);
      const saved = plan.savedActivations.reduce((sum, { bytes }) => sum + bytes, 0);
      console.log(
        `${file} ${attention}: parameters ${percent(plan.model.parameters / measured.parameters - 1)}, saved ${percent(saved / measured.saved - 1)}`,
      );
    }
  }
}

if (options.library !== undefined) {
  withLibrary(options.library);
} else if (options.python === undefined) {
  published();
} else {
  onDevice(options.python);
}
