import { writeFile } from "node:fs/promises";
import { Command, InvalidArgumentError, Option } from "commander";
import { didYouMean } from "../../model/base/near_miss.js";
import { shellWord } from "../../model/base/shell_word.js";
import type { OnProgress } from "../../model/base/units.js";
import { badUsage, nothingThere } from "../../model/errors/errors.js";
import { knowsValue } from "../../model/profile/imported.js";
import type { SiteValue } from "../../model/profile/profile.js";
import {
  EXPORTERS,
  type Exporter,
  type ProfileExporter,
  type Recording,
  type RecordingExporter,
} from "../../store/index.js";
import { ownExport } from "../files/own_files.js";
import { MOMENT_HELP, openRecordingAt, parseMoment, sayMissing } from "../files/recordings.js";
import { requireOtherFile, writeWhole, writeWholeFolder } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  withCommonOptions,
  withExamples,
  withForceOption,
} from "../options/options.js";
import { withProgress } from "../text/progress.js";

const NAMES = EXPORTERS.map(({ name }) => name).join(", ");
const WHOLE_RECORDING = EXPORTERS.filter(({ kind }) => kind !== "profile").map(({ name }) => name);

const VALUES: readonly SiteValue[] = [
  "liveBytes",
  "liveObjects",
  "peakBytes",
  "peakObjects",
  "allocatedBytes",
  "allocatedObjects",
];

interface ExportCommandOptions extends CommonOptions {
  readonly format?: Exporter[];
  readonly output?: string;
  readonly force?: boolean;
  readonly at: string;
  readonly value: SiteValue;
}

export const about: CommandAbout = {
  group: "recordings",
  summary: "write a recording in another tool's format",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("export")
    .description(
      "Export a recording to the formats of other tools. Most formats hold the profile at one moment;\n" +
        `${WHOLE_RECORDING.join(" and ")} hold the whole recording.`,
    )
    .argument("<recording>", "a .tidemark file")
    .addOption(
      new Option("--format <formats>", "one or more formats, separated by commas")
        .choices(EXPORTERS.map(({ name }) => name))
        .argParser(parseFormats),
    )
    .option("-o, --output <file>", "output file, - for stdout (default: the recording's name)")
    .option("--at <moment>", `${MOMENT_HELP}; not for ${WHOLE_RECORDING.join(" and ")}`, "end")
    .addOption(
      new Option("--value <figure>", "the value that folded stacks show")
        .choices(VALUES)
        .default("liveBytes"),
    );
  withForceOption(command);
  withCommonOptions(command, "stdout");
  command.addHelpText("after", `\nFormats:\n${formatList()}`);
  return withExamples(
    command,
    "tidemark export app.tidemark --format pprof && go tool pprof -http : app.pb.gz",
    "tidemark export app.tidemark --format folded --at peak -o - | flamegraph.pl > app.svg",
    "tidemark export app.tidemark --format duckdb,csv",
  ).action(exportRecording);
}

/** One line per format, laid out as commander lists options. */
function formatList(): string {
  const width = Math.max(...EXPORTERS.map(({ name }) => name.length));
  return EXPORTERS.map(({ name, description }) => `  ${name.padEnd(width)}  ${description}`).join(
    "\n",
  );
}

async function exportRecording(path: string, options: ExportCommandOptions): Promise<void> {
  const { format } = options;
  if (format === undefined) {
    throw badUsage(
      `export needs --format, one or more of ${NAMES}`,
      `tidemark export ${shellWord(path)} --format pprof`,
    );
  }
  if (options.output !== undefined && format.length > 1) {
    throw badUsage("-o names one file, but --format lists several", "omit -o");
  }
  const recording = openRecordingAt(path);
  const files: string[] = [];
  for (const exporter of format) {
    const output = options.output ?? `${path.replace(/\.tidemark$/, "")}${exporter.extension}`;
    if (output === "-") {
      writeToStdout(recording, exporter, options);
      sayMissing(recording);
      return;
    }
    requireOtherFile(output, path);
    files.push(...(await writeFormat(recording, exporter, output, options)));
  }
  sayWritten(format.map(({ name }) => name).join(","), files, options);
  sayMissing(recording);
}

function writeToStdout(
  recording: Recording,
  exporter: Exporter,
  options: ExportCommandOptions,
): void {
  const { name, stdout } = exporter;
  if (exporter.kind !== "profile" || stdout === "never") {
    throw badUsage(`${name} cannot be written to stdout`, "name a file with -o");
  }
  if (stdout === "unless terminal" && process.stdout.isTTY) {
    throw badUsage(
      `${name} is a binary format, and stdout is a terminal`,
      "name a file with -o, or pipe the output",
    );
  }
  process.stdout.write(encode(recording, exporter, options));
}

/** @returns the files written. */
async function writeFormat(
  recording: Recording,
  exporter: Exporter,
  output: string,
  options: ExportCommandOptions,
): Promise<readonly string[]> {
  if (exporter.kind !== "profile") {
    return withProgress(output, "snapshots", options, (onProgress) =>
      writeRecording(recording, exporter, { output, force: options.force }, onProgress),
    );
  }
  const bytes = encode(recording, exporter, options);
  const replacing = { force: options.force, isOwn: ownExport(exporter.mark) };
  await writeWhole(output, replacing, (file) => writeFile(file, bytes));
  return [output];
}

async function writeRecording(
  recording: Recording,
  exporter: RecordingExporter,
  { output, force }: { readonly output: string; readonly force: boolean | undefined },
  onProgress: OnProgress,
): Promise<string[]> {
  const replacing = { force, isOwn: ownExport(exporter.mark) };
  if (exporter.kind === "recording folder") {
    return writeWholeFolder(output, { ...replacing, suffix: exporter.extension }, (folder) =>
      exporter.write(recording, folder, onProgress),
    );
  }
  await writeWhole(output, replacing, (file) => exporter.write(recording, file, onProgress));
  return [output];
}

function encode(
  recording: Recording,
  exporter: ProfileExporter,
  options: ExportCommandOptions,
): string | Uint8Array {
  const { imported } = recording.meta;
  requireKnown(recording, exporter, options);
  const profile = recording.profileAt(parseMoment(options.at, recording).moment);
  const title = recording.meta.command.join(" ");
  return exporter.encode(profile, { value: options.value, title, imported });
}

/** Throws TM-E014 if the format would contain nothing but values that the imported file lacks. */
function requireKnown(
  { path, meta: { imported } }: Recording,
  { name, oneValue }: ProfileExporter,
  { value }: ExportCommandOptions,
): void {
  const known = VALUES.filter((each) => knowsValue(imported, each));
  if (known.length === 0 || (oneValue === true && !known.includes(value))) {
    throw nothingThere(
      `${path}, imported from ${imported?.tool}, contains no ${known.length === 0 ? "memory by stack" : value}`,
      known.length === 0
        ? `see what it contains: tidemark summary ${shellWord(path)}`
        : `it contains ${known.join(", ")}: tidemark export ${shellWord(path)} --format ${name} --value ${known[0]}`,
    );
  }
}

function parseFormats(text: string): Exporter[] {
  const names = new Set(text.split(",").map((name) => name.trim()));
  return Array.from(names, (wanted) => {
    const exporter = EXPORTERS.find(({ name }) => name === wanted);
    if (exporter === undefined) {
      const guess = didYouMean(
        wanted,
        EXPORTERS.map(({ name }) => name),
      );
      throw new InvalidArgumentError(
        `one or more of ${NAMES}, not '${wanted}'${guess && ` (${guess})`}`,
      );
    }
    return exporter;
  });
}
