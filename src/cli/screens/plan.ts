/** A plan on a screen: the three figures, the parts, what would save memory. */
import {
  formatBytes,
  formatExactCount,
  formatShare,
  formatSignedBytes,
} from "../../model/base/numbers.js";
import type { PlanFigureJson, PlanJson } from "../../model/documents/plan_document.js";
import { oneLine } from "../../model/errors/errors.js";
import {
  cacheWords,
  errorWords,
  fitText,
  largeCount,
  layerWords,
  measuredAs,
  mostOf,
  partWords,
  roomWords,
} from "../../plan/index.js";
import { bar, type Column, printTable, type Screen } from "../text/output.js";

const BAR = 10;
const SHOWN_SAVINGS = 8;
const FORMULA_COLUMNS = 90;
const LONGEST_SENTENCE = 4000;

export function printPlan(screen: Screen, plan: PlanJson, quiet: boolean): void {
  printHead(screen, plan);
  printCautions(screen, plan);
  printParts(screen, plan);
  printServing(screen, plan);
  printFits(screen, plan);
  printComparison(screen, plan);
  printFitTable(screen, plan);
  printSavings(screen, plan);
  if (!quiet) {
    printAssumptions(screen, plan);
  }
}

function printHead(screen: Screen, plan: PlanJson): void {
  const { model, mode, devices, memory, peak } = plan;
  const { paint } = screen;
  const active =
    model.activeParameters < model.parameters
      ? `, ${largeCount(model.activeParameters)} active`
      : "";
  const name = oneLine(model.name === "" ? model.family : model.name, 80);
  screen.line(
    `${paint.bold(name)}: ${oneLine(model.family, 60)}, ${largeCount(model.parameters)} parameters${active}, ${oneLine(layerWords(model), 80)}`,
  );
  const device = devices.name === "" ? "GPU" : devices.name;
  const each = `${formatBytes(devices.memoryBytes)}${devices.count === 1 ? "" : " each"}`;
  const rank =
    devices.worstRank === "" ? "" : `; figures of ${devices.worstRank}, which needs most`;
  screen.line(
    `${mode === "train" ? "training" : "serving"} on ${formatExactCount(devices.count)} x ${device} (${each})${rank}`,
  );
  screen.line();
  const row = (title: string, figure: PlanFigureJson, note: string): void =>
    screen.line(
      `  ${title.padEnd(11)}${paint.bold(formatBytes(figure.bytes).padStart(9))}  ${`${formatBytes(figure.low)} to ${formatBytes(figure.high)}`.padEnd(24)}  ${paint.dim(note)}`,
    );
  const notes = measuredAs(plan);
  row("allocated", memory.allocated, notes.allocated);
  row("reserved", memory.reserved, notes.reserved);
  row("on device", memory.device, notes.device);
  screen.line(paint.dim(`  peak during the ${oneLine(peak)}`));
  screen.line();
}

function printParts(screen: Screen, { parts, perDeviceBytes, devices }: PlanJson): void {
  const { paint } = screen;
  const columns: Column[] = [
    { title: "PART", paint: paint.bold },
    { title: "BYTES", align: "right" },
    { title: "SHARE", align: "right" },
    { title: "" },
    { title: "FORMULA", flexible: "cutEnd", paint: paint.dim },
  ];
  const rows = parts.map(({ part, bytes, formula }) => [
    partWords(part, devices),
    formatBytes(bytes),
    formatShare(bytes / perDeviceBytes),
    bar(bytes / perDeviceBytes, BAR),
    screen.cuts ? screen.cutEnd(formula, FORMULA_COLUMNS) : formula,
  ]);
  printTable(screen, columns, rows);
  screen.line();
}

function printServing(
  screen: Screen,
  { serving, model }: Pick<PlanJson, "serving" | "model">,
): void {
  if (serving === undefined) {
    return;
  }
  const words = cacheWords(serving);
  screen.line(
    words === null
      ? "  no cache: the model makes its output in one pass"
      : `  cache: ${words}; ${roomWords(serving, model)}`,
  );
}

function printFits(screen: Screen, plan: PlanJson): void {
  const { fits, memory, mode, devices, model } = plan;
  const { paint } = screen;
  const device = devices.name === "" ? formatBytes(fits.deviceBytes) : devices.name;
  const words = fitText(plan);
  const isSure = !words.startsWith("probably");
  const colour = !isSure ? paint.yellow : fits.fits ? paint.green : paint.red;
  const interval = `${formatBytes(memory.device.low)} to ${formatBytes(memory.device.high)}`;
  const verdict = colour(words);
  const batch = mode === "train" ? "batch" : "number of sequences";
  if (!model.readsText) {
    const most =
      fits.maxBatch === 0 ? `no ${batch} fits` : `largest ${batch}: ${mostOf(fits.maxBatch)}`;
    screen.line(`  ${verdict} on ${device}; ${most}`);
    screen.line();
    return;
  }
  const end = model.longestSequence === fits.maxSequence ? ", as the model was made for" : "";
  const longest = mostOf(fits.maxSequence, model.longestSequence);
  const most =
    fits.maxBatch === 0 && fits.maxSequence === 0
      ? `; no ${batch} fits at this length, and no length of 64 tokens or more at this ${batch}`
      : fits.maxBatch === 0
        ? `; no ${batch} fits at this length, but up to ${longest} tokens at this ${batch} do`
        : fits.maxSequence === 0
          ? `; at this length, a ${batch} of up to ${mostOf(fits.maxBatch)} fits`
          : `; largest ${batch} at this length: ${mostOf(fits.maxBatch)}; longest length at this ${batch}: ${longest} tokens${end}`;
  screen.line(`  ${verdict} on ${device}${most}`);
  if (!isSure) {
    const planned = `it takes ${interval} of the device's ${formatBytes(fits.deviceBytes)}; the largest batch and length are for the middle of that interval`;
    for (const line of screen.wrap(planned, 2)) {
      screen.line(`  ${line}`);
    }
  }
  if (fits.reason !== undefined) {
    for (const line of screen.wrap(`because ${fits.reason}`, 2)) {
      screen.line(`  ${line}`);
    }
  }
  if (fits.beyond !== undefined) {
    for (const line of screen.wrap(fits.beyond, 2)) {
      screen.line(`  ${line}`);
    }
  }
  screen.line();
}

function printSavings(screen: Screen, { savings }: PlanJson): void {
  if (savings.length === 0) {
    return;
  }
  const { paint } = screen;
  const shown = savings.slice(0, SHOWN_SAVINGS);
  const adds = shown.some(({ addedTokens }) => addedTokens !== undefined);
  const columns: Column[] = [
    { title: adds ? "WOULD ADD" : "WOULD SAVE", align: "right" },
    { title: "TECHNIQUE", paint: paint.bold },
    { title: "COST" },
    { title: "CHANGE" },
    { title: "IN THE PROGRAM", flexible: "cutEnd", paint: paint.dim },
  ];
  const rows = shown.map((row) => [
    row.addedTokens === undefined
      ? formatBytes(row.bytes)
      : `${formatExactCount(row.addedTokens)} tokens of cache`,
    row.technique,
    row.cost,
    row.change,
    row.program,
  ]);
  printTable(screen, columns, rows);
  if (savings.length > shown.length) {
    const more = savings.length - shown.length;
    screen.line(paint.dim(`  ${more} smaller ${more === 1 ? "one" : "ones"}: --json`));
  }
  screen.line();
}

function printFitTable(screen: Screen, { fitTable, mode, fits, model }: PlanJson): void {
  if (fitTable === undefined) {
    return;
  }
  const right = { align: "right" } as const;
  const columns: Column[] = [
    { title: "DEVICE" },
    { title: "MEMORY", ...right },
    { title: mode === "train" ? "METHOD" : "ENGINE", paint: screen.paint.bold },
    { title: "FITS" },
    { title: mode === "train" ? "BATCH" : "SEQUENCES", ...right },
    { title: "LENGTH", ...right },
  ];
  const rows = fitTable.map((row) => [
    row.device === "" ? "GPU" : row.device,
    formatBytes(row.deviceBytes),
    row.method,
    row.fits ? "yes" : "no",
    row.maxBatch === 0 ? "-" : mostOf(row.maxBatch),
    row.maxSequence === 0 ? "-" : mostOf(row.maxSequence, model.longestSequence),
  ]);
  printTable(screen, columns, rows);
  screen.line(
    screen.paint.dim(
      `  ${model.readsText ? `${mode === "train" ? "BATCH" : "SEQUENCES"}: most at this length; LENGTH: longest at this ${mode === "train" ? "batch" : "number of sequences"}; large ones are rounded down; gaps of the allocator may let a longer one fit` : "BATCH: largest number of images"}${fits.fits ? "" : "; the plan as given does not fit"}`,
    ),
  );
  screen.line();
}

function printComparison(screen: Screen, { comparison }: PlanJson): void {
  if (comparison === undefined) {
    return;
  }
  const { paint } = screen;
  const { file, kind, plannedBytes, measuredBytes, within, parts, explanation } = comparison;
  screen.line(
    `  ${paint.bold("measured")} ${formatBytes(measuredBytes)} (${kind}, ${oneLine(file, 120)}), planned ${formatBytes(plannedBytes)}: ${errorWords(comparison)}, ${within ? paint.green("within the interval") : paint.red("outside the interval")}`,
  );
  if (parts.length > 0) {
    const right = { align: "right" } as const;
    const columns: Column[] = [
      { title: "PART", paint: paint.bold },
      { title: "PLANNED", ...right },
      { title: "MEASURED", ...right },
      { title: "DIFFERENCE", ...right },
    ];
    const rows = parts.map((row) => [
      row.part,
      formatBytes(row.plannedBytes),
      formatBytes(row.measuredBytes),
      formatSignedBytes(row.differenceBytes),
    ]);
    printTable(screen, columns, rows);
  }
  for (const line of screen.wrap(oneLine(explanation, 600), 2)) {
    screen.line(`  ${line}`);
  }
  screen.line();
}

/** Without them the figures would be misread, so `--quiet` prints them, too. */
function printCautions(screen: Screen, { limits }: PlanJson): void {
  for (const limit of limits) {
    for (const line of screen.wrap(`caution: ${oneLine(limit, 600)}`, 2)) {
      screen.line(`  ${line}`);
    }
  }
  if (limits.length > 0) {
    screen.line();
  }
}

/** What the figures rest on: the job, and where the formula of each part comes from. */
function printAssumptions(screen: Screen, { assumptions, host, parts, devices }: PlanJson): void {
  const said = [
    `assumed: ${assumptions.join("; ")}`,
    ...(host.length > 0
      ? [
          `host memory of each process: ${host.map(({ part, bytes }) => `${part} ${formatBytes(bytes)}`).join(", ")}`,
        ]
      : []),
    `sources: ${parts.map(({ part, source }) => `${partWords(part, devices)}: ${source}`).join("; ")}`,
  ];
  for (const text of said) {
    for (const line of screen.wrap(oneLine(text, LONGEST_SENTENCE), 2)) {
      screen.line(`  ${screen.paint.dim(line)}`);
    }
  }
}
