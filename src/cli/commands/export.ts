import { writeFile } from "node:fs/promises";
import { Command, InvalidArgumentError, Option } from "commander";
import { badUsage } from "../../model/errors.js";
import type { Profile, SiteValue } from "../../model/profile.js";
import {
  type Recording,
  toCsv,
  toFolded,
  toPprof,
  toSpeedscope,
  writeDuckdb,
  writeParquet,
} from "../../store/index.js";
import { MOMENT_HELP, openRecordingAt, parseMoment } from "../files/recordings.js";
import { requireOtherFile, writeWhole, writeWholeFolder } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import { type CommonOptions, withCommonOptions, withExamples } from "../options/options.js";
import { withProgress } from "../text/progress.js";

const SUFFIXES = {
  pprof: ".pb.gz",
  folded: ".folded.txt",
  speedscope: ".speedscope.json",
  csv: ".csv",
  parquet: ".parquet",
  duckdb: ".duckdb",
} as const;
type Format = keyof typeof SUFFIXES;
const FORMATS = Object.keys(SUFFIXES) as Format[];

const VALUES: readonly SiteValue[] = [
  "liveBytes",
  "liveObjects",
  "peakBytes",
  "peakObjects",
  "allocatedBytes",
  "allocatedObjects",
];

interface ExportOptions extends CommonOptions {
  readonly format: Format[];
  readonly output?: string;
  readonly at: string;
  readonly value: SiteValue;
}

export function buildCommand(): Command {
  const command = new Command("export")
    .description(
      "Write a recording for other tools: pprof (go tool pprof, Pyroscope), folded (flamegraph.pl),\n" +
        "speedscope, csv; or all of it as a DuckDB database or a folder of Parquet files for SQL.",
    )
    .argument("<recording>", "a .tidemark file")
    .requiredOption("--format <formats>", `one or more of ${FORMATS.join(", ")}`, parseFormats)
    .option("-o, --output <file>", "the file, - for stdout (default: the recording's name)")
    .option("--at <moment>", `${MOMENT_HELP}; parquet and duckdb hold all`, "end")
    .addOption(
      new Option("--value <figure>", "what folded stacks count")
        .choices(VALUES)
        .default("liveBytes"),
    );
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark export app.tidemark --format pprof && go tool pprof -http : app.pb.gz",
    "tidemark export app.tidemark --format folded --at peak -o - | flamegraph.pl > app.svg",
    "tidemark export app.tidemark --format duckdb,csv",
  ).action(exportRecording);
}

async function exportRecording(path: string, options: ExportOptions): Promise<void> {
  if (options.output !== undefined && options.format.length > 1) {
    throw badUsage("-o names one file, and --format several", "leave -o out");
  }
  const recording = openRecordingAt(path);
  const files: string[] = [];
  for (const format of options.format) {
    const output = options.output ?? `${path.replace(/\.tidemark$/, "")}${SUFFIXES[format]}`;
    if (output === "-") {
      writeToStdout(recording, format, options);
      return;
    }
    requireOtherFile(output, path);
    files.push(...(await writeFormat(recording, format, output, options)));
  }
  sayWritten(options.format.join(","), files, options);
}

function writeToStdout(recording: Recording, format: Format, options: ExportOptions): void {
  if (format === "parquet" || format === "duckdb") {
    throw badUsage(`${format} cannot be written to stdout`, "name a file with -o");
  }
  if (format === "pprof" && process.stdout.isTTY) {
    throw badUsage("pprof is no text for a terminal", "name a file with -o, or a pipe");
  }
  process.stdout.write(encode(profileFor(recording, options), format, recording, options));
}

/** @returns the files written. */
async function writeFormat(
  recording: Recording,
  format: Format,
  output: string,
  options: ExportOptions,
): Promise<string[]> {
  if (format === "duckdb" || format === "parquet") {
    return withProgress(output, "looks", options, async (tell) => {
      if (format === "parquet") {
        return writeWholeFolder(output, SUFFIXES.parquet, (folder) =>
          writeParquet(recording, folder, tell),
        );
      }
      await writeWhole(output, (file) => writeDuckdb(recording, file, tell));
      return [output];
    });
  }
  const bytes = encode(profileFor(recording, options), format, recording, options);
  await writeWhole(output, (file) => writeFile(file, bytes));
  return [output];
}

function profileFor(recording: Recording, options: ExportOptions): Profile {
  return recording.profileAt(parseMoment(options.at, recording).moment);
}

function encode(
  profile: Profile,
  format: "pprof" | "folded" | "speedscope" | "csv",
  recording: Recording,
  options: ExportOptions,
): string | Uint8Array {
  switch (format) {
    case "pprof":
      return toPprof(profile);
    case "folded":
      return toFolded(profile, options.value);
    case "speedscope":
      return toSpeedscope(profile, recording.meta.command.join(" "));
    case "csv":
      return toCsv(profile);
  }
}

function parseFormats(text: string): Format[] {
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !FORMATS.includes(name as Format));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`'${unknown}' is none of ${FORMATS.join(", ")}`);
  }
  return [...new Set(names)] as Format[];
}
