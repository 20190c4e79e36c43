/**
 * Compares planned with measured memory:
 * `npm run bench -- plan [--library PYTHON [--only NAME ...]] [--device measured.json [--write TABLE]]`
 *
 * Without options: the peaks that other projects published (bench/plan_rows.json, each with its source and the options
 * that plan it), written to docs/plan.md. With `--device`: what bench/plan_device.py measured on a GPU, which needs
 * neither Node nor Tidemark there; `--write` also writes it to docs/plan.md, as table `plan-device`, `plan-divided`,
 * `plan-diffusion` or `plan-further`. With `--library`, an interpreter with torch, transformers and diffusers: builds the models of
 * test/data/plan/library on the CPU and compares parameters and the tensors that autograd saves; `--only` names one, and may be repeated.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Command } from "commander";
import { requestOf, withPlanOptions } from "../dist/cli/options/plan_options.js";
import { planDocument } from "../dist/inspect/index.js";
import { TidemarkError } from "../dist/model/errors/errors.js";
import { USUAL_GPU } from "../dist/plan/device/gpus.js";
import { markdownTable, writeResults } from "./results.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: options } = parseArgs({
  options: {
    device: { type: "string" },
    library: { type: "string" },
    only: { type: "string", multiple: true },
    write: { type: "string" },
  },
});
const GIB = 2 ** 30;
const kinds = /** @type {const} */ (["allocated", "reserved", "device"]);

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

/**
 * @typedef {{id: string, allocated?: number, reserved?: number, device?: number, parameters: number, weights: number,
 *   cache?: number, saved?: number, error?: string, outOfMemory?: string}} Measured
 */

/** @param {string} file written by bench/plan_device.py */
function onDevice(file) {
  const measured = JSON.parse(readFileSync(file, "utf8"));
  const given = JSON.parse(readFileSync(join(root, "bench/plan_device_cases.json"), "utf8"));
  const published = JSON.parse(readFileSync(join(root, "test/data/plan/models.json"), "utf8"));
  const folder = mkdtempSync(join(tmpdir(), "tidemark-plan-"));
  const machine = measured.cases.find((/** @type {Measured} */ { id }) => id === "machine");
  const gpu = machine.name.includes("H200") ? "h200" : "h100";
  /** @type {string[][]} */
  const cells = [];
  /** @type {Parameters<typeof summary>[0]} */
  const rows = [];
  try {
    for (const each of given.cases) {
      const run = /** @type {Measured | undefined} */ (
        measured.cases.find((/** @type {Measured} */ { id }) => id === each.id)
      );
      if (run === undefined || run.allocated === undefined || each.reference === true) {
        continue;
      }
      const config = { ...(given.models[each.model] ?? published[each.model].config) };
      if (each.layers !== undefined) {
        config["num_hidden_layers" in config ? "num_hidden_layers" : "n_layer"] = each.layers;
      }
      const path = join(folder, `${each.id}.json`);
      writeFileSync(path, JSON.stringify(config));
      const layers = each.layers === undefined ? "" : `, ${each.layers} layers`;
      const what = `${each.model}${layers} \`${each.words}\``;
      const plan = planOrRefusal(path, `${each.words} --gpu ${gpu}`);
      if (typeof plan === "string") {
        const peaks = kinds.map(
          (kind) => `${(/** @type {number} */ (run[kind]) / GIB).toFixed(2)} / –`,
        );
        cells.push([each.id, what, ...peaks, `refused: ${plan}`]);
        continue;
      }
      const errors = kinds.map((kind) => {
        const figure = /** @type {Figure} */ (plan.memory[kind]);
        const bytes = /** @type {number} */ (run[kind]);
        rows.push({ id: each.id, what: "", kind, measured: bytes, figure, source: "" });
        const inside = figure.low <= bytes && bytes <= figure.high ? "" : " (outside)";
        return `${(bytes / GIB).toFixed(2)} / ${(figure.bytes / GIB).toFixed(2)} ${percent(figure.bytes / bytes - 1)}${inside}`;
      });
      const cache = plan.parts.find(({ part }) => part === "kv cache")?.bytes;
      const exact =
        run.cache === undefined || cache === undefined
          ? "–"
          : // Each layer with a window also has a counter of 8 B.
            Math.abs(cache - run.cache) < 1024
            ? "exact"
            : percent(cache / run.cache - 1);
      cells.push([each.id, what, ...errors, exact]);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const lines = kinds.map(
    (kind) => `- ${kind}: ${summary(rows.filter((row) => row.kind === kind))}`,
  );
  const table = markdownTable(
    ["case", "plan", ...kinds.map((kind) => `${kind}: measured / planned GiB`), "KV cache"],
    cells,
  );
  const text = `Measured on ${measured.date} on one ${machine.name}, torch ${machine.torch}, transformers ${machine.transformers}.\n\n${lines.join("\n")}\n\n${table}`;
  if (options.write !== undefined) {
    writeResults(options.write, text, "plan.md");
  }
  console.log(text);
}

/**
 * @param {string} path @param {string} words @param {boolean} isCpu with torch's kernels for the CPU
 * @returns the plan, or the id of the error that refuses it
 */
function planOrRefusal(path, words, isCpu = false) {
  try {
    return document(path, words, isCpu);
  } catch (error) {
    if (error instanceof TidemarkError) {
      return error.id;
    }
    throw error;
  }
}

/**
 * In this process: a program for each of so many plans would take minutes.
 * @param {string} path @param {string} words @param {boolean} isCpu with torch's kernels for the CPU
 */
function document(path, words, isCpu = false) {
  const command = new Command("plan");
  withPlanOptions(command);
  command.parse(words.split(" "), { from: "user" });
  const request = requestOf(command.opts());
  const own = isCpu ? { ...request, gpu: { ...USUAL_GPU, isCpu } } : request;
  return planDocument(path, own, { configs: [] }).plan;
}

/** @param {string} python */
async function withLibrary(python) {
  const folder = join(root, "test/data/plan/library");
  const paths = readdirSync(folder)
    .filter((file) => options.only === undefined || options.only.includes(basename(file, ".json")))
    .map((file) => join(folder, file));
  const script = join(root, "bench/plan_library.py");
  // An image of Qwen-VL, Qwen 3.5, GLM-4V or Pixtral alone has 196 to 256 rows, one of Gemma 4 has 280.
  const long = paths.filter((path) =>
    /qwen\d.*_vl|qwen3_5\.|gemma4(?:_images)?\.|glm4v|mistral3/.test(basename(path)),
  );
  const short = paths.filter((path) => !long.includes(path));
  /** @type {number[]} */
  const errors = [];
  for (const [sequence, own] of /** @type {const} */ ([
    ["192", short],
    ["320", long],
  ])) {
    if (own.length > 0) {
      const words = ["-u", script, "2", sequence, "full", ...own];
      const measuring = spawn(python, words, { stdio: ["ignore", "pipe", "ignore"] });
      const ended = once(measuring, "close");
      // Row by row: a run takes most of an hour, and one that is stopped has shown what it measured.
      for await (const line of createInterface(measuring.stdout)) {
        errors.push(...compareWithLibrary(line, sequence));
      }
      const [status] = await ended;
      if (status !== 0) {
        throw new Error(`bench/plan_library.py ended with ${status}`);
      }
    }
  }
  const outside = errors.filter((error) => Math.abs(error) > LIBRARY_ERROR).length;
  const largest = Math.max(...errors.map(Math.abs));
  const text = `${errors.length} rows of models and kernels: saved tensors within ${(100 * largest).toFixed(1)} % of the plan.`;
  console.log(text);
  process.exitCode = outside > 0 ? 1 : 0;
  if (options.only === undefined && outside === 0) {
    writeResults("plan-library", text, "plan.md");
  }
}

/** Saved bytes of a plan may differ so much from the library's. */
const LIBRARY_ERROR = 0.02;

/** @param {string} line of bench/plan_library.py @param {string} sequence @returns the error of its saved bytes; none for a kernel that torch lacks */
function compareWithLibrary(line, sequence) {
  const measured = JSON.parse(line);
  const name = `${basename(measured.path, ".json")} ${measured.attention}`;
  if (measured.error !== undefined) {
    console.log(`${name}: ${measured.error.slice(0, 160)}`);
    // Some classes have one kernel alone, and torch has no `cdist` (YOLOS) in 16 bits on the CPU.
    return /does not support an attention|not implemented for 'BFloat16'/.test(measured.error)
      ? []
      : [1];
  }
  const plan = planOrRefusal(
    measured.path,
    `--batch 2 --seq ${sequence} --no-padding --attention ${measured.attention} ${measured.attention === "eager" ? "--dtype fp32" : "--dtype bf16 --weights 16bit"}`,
    true,
  );
  if (typeof plan === "string") {
    console.log(`${name}: refused: ${plan}`);
    return [1];
  }
  const saved = (plan.savedActivations ?? []).reduce((sum, { bytes }) => sum + bytes, 0);
  console.log(
    `${name}: parameters ${percent(plan.model.parameters / measured.parameters - 1)}, saved ${percent(saved / measured.saved - 1)}`,
  );
  return [saved / measured.saved - 1];
}

if (options.library !== undefined) {
  await withLibrary(options.library);
} else if (options.device === undefined) {
  published();
} else {
  onDevice(options.device);
}
