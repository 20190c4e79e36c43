/** Profiles of scalene (`scalene run`, JSON): memory by source line. The format has no version. */
import { formatBytes } from "../../model/base/numbers.js";
import type { LineFigures } from "../../model/profile/imported.js";
import { Domain } from "../../model/profile/profile.js";
import { ImportedSites, pythonFrame } from "./imported_sites.js";
import type { ForeignFile, ForeignRecording, ProfileImporter } from "./importer.js";
import {
  amountOf,
  type JsonObject,
  listOf,
  numberOf,
  objectOf,
  parseJson,
  textOf,
} from "./json.js";

const MIB = 2 ** 20;

export const scalene: ProfileImporter = {
  name: "scalene",
  description: "scalene: the JSON profile of scalene run",
  recognizes: ({ head, bytes }) =>
    /^\s*\{/.test(head) &&
    bytes.includes('"elapsed_time_sec"') &&
    bytes.includes('"max_footprint_mb"'),
  read,
};

function read(file: ForeignFile): ForeignRecording {
  const profile = objectOf(parseJson(file));
  const elapsedMs = amountOf(profile.elapsed_time_sec, "elapsed_time_sec") * 1000;
  const absolute = amountOf(profile.start_time_absolute, "start_time_absolute", 0) * 1000;
  const startedMs = absolute > 0 ? absolute : file.writtenMs - elapsedMs;
  const sites = new ImportedSites({
    pid: 0,
    command: [textOf(profile.program)].filter((word) => word !== ""),
    python: "",
    startedMs,
  });
  const lines: LineFigures[] = [];
  for (const [path, value] of Object.entries(objectOf(profile.files))) {
    addFile(sites, lines, { path, content: objectOf(value), seconds: elapsedMs / 1000 });
  }
  const endedMs = startedMs + elapsedMs;
  return {
    tool: "scalene",
    precision: "sampled",
    known: ["allocated", "time", "python"],
    snapshots: [sites.snapshot(endedMs, elapsedMs, 0)],
    tables: sites.tables(),
    startedMs,
    endedMs,
    metrics: footprint(profile, startedMs),
    events: [],
    lines,
    limits: [
      "Figures are scalene's samples by line. A line's own peak is the most that it allocated while no other line did: it may hold more.",
      ...highestFootprint(profile),
      ...(profile.memory === false
        ? ["Scalene ran without --memory: no memory was measured."]
        : []),
    ],
  };
}

function highestFootprint(profile: JsonObject): string[] {
  const most = numberOf(profile.max_footprint_mb) * MIB;
  return most > 0
    ? [`The memory of the whole program was at most ${formatBytes(most)}, by scalene.`]
    : [];
}

interface ScaleneFile {
  readonly path: string;
  readonly content: JsonObject;
  readonly seconds: number;
}

function addFile(
  sites: ImportedSites,
  lines: LineFigures[],
  { path, content, seconds }: ScaleneFile,
): void {
  const names = new Map(
    listOf(content.functions)
      .map(objectOf)
      .map((row) => [numberOf(row.lineno), textOf(row.line)]),
  );
  for (const row of listOf(content.lines).map(objectOf)) {
    const line = amountOf(row.lineno, "lineno");
    const name = names.get(numberOf(row.start_function_line)) ?? "<module>";
    const allocated = amountOf(row.n_malloc_mb, "n_malloc_mb", 0) * MIB;
    const share = Math.min(1, amountOf(row.n_python_fraction, "n_python_fraction", 0));
    const stack = sites.push(0, pythonFrame(name, path, line));
    if (allocated > 0) {
      sites.add({ stack, domain: Domain.python }, { allocated: allocated * share });
      sites.add({ stack, domain: Domain.native }, { allocated: allocated * (1 - share) });
    }
    const peakBytes = amountOf(row.n_peak_mb, "n_peak_mb", 0) * MIB;
    const copiedBytes = amountOf(row.n_copy_mb_s, "n_copy_mb_s", 0) * seconds * MIB;
    if (peakBytes > 0 || copiedBytes > 0) {
      lines.push({ file: path, line, function: name, peakBytes, copiedBytes });
    }
  }
}

/** Scalene's own count of live memory, which is less than RSS. Pairs of ns since the start and MiB. */
function footprint(profile: JsonObject, startedMs: number): ForeignRecording["metrics"] {
  return listOf(profile.samples)
    .map(listOf)
    .map(([time, mib]) => ({
      metric: "liveBytes" as const,
      timeMs: startedMs + amountOf(time, "the time of a sample") / 1e6,
      // Sampled frees may exceed sampled allocations for a moment.
      value: Math.max(0, numberOf(mib)) * MIB,
    }));
}
