import { writeFile } from "node:fs/promises";
import { Command, Option } from "commander";
import { diagnoseRecording, type RunResult, summarize } from "../../inspect/index.js";
import { ownKind, type Replacing } from "../files/own_files.js";
import { writeWhole } from "../files/write_whole.js";
import type { CommandAbout } from "../options/about.js";
import {
  type AllocatorOptions,
  allocatorNote,
  allocatorOf,
  withAllocator,
} from "../options/allocator.js";
import { type DestinationOptions, destinationOf, withDestination } from "../options/destination.js";
import { type DeviceOptions, deviceWatchOf, withDeviceOptions } from "../options/device_options.js";
import {
  type ListOptions,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { PERIOD_HELP, parsePeriod } from "../options/period.js";
import { withProgram } from "../options/program_words.js";
import { summaryWithVerdict } from "../options/select_sites.js";
import { crashNotes, isNativeFault } from "../screens/crash.js";
import { printVerdict } from "../screens/diagnosis.js";
import { DEFAULT_SITES } from "../screens/site_ranking.js";
import { printSummary } from "../screens/summary.js";
import { failedAtOnce, failureLine, summaryContext } from "../screens/summary_context.js";
import { printNote, printNotes, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";
import { type ProgramOptions, runToEnd } from "./run_to_end.js";

interface RunOptions
  extends ProgramOptions,
    ListOptions,
    DeviceOptions,
    DestinationOptions,
    AllocatorOptions {
  readonly json?: string;
  readonly quiet?: boolean;
}

export const about: CommandAbout = {
  group: "record",
  summary: "run a program and record where its memory goes",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("run")
    .description(
      "Run a program under the agent, record where its memory goes, and print a summary to stderr when\n" +
        "it ends. Its input, output, terminal, signals and exit code pass through untouched.",
    )
    .option(
      "-o, --output <recording>",
      "file to write the recording to (default NAME-TIME.tidemark)",
    )
    .option("-f, --force", "overwrite the files that -o and --json name")
    .option("--native", "also record native (C, C++, Rust) frames")
    .option("--copies", "also count the bytes that memcpy and memmove copy, by line")
    .option("--period <bytes>", PERIOD_HELP, parsePeriod)
    .addOption(new Option("--no-follow", "do not profile child processes"));
  withProgram(command);
  withAllocator(command);
  withDestination(command);
  withDeviceOptions(command);
  withListOptions(command, "sites", DEFAULT_SITES);
  withCommonOptions(command, "file");
  return withExamples(
    command,
    "tidemark run app.py --port 8000",
    "tidemark run -o load.tidemark --native -m pytest -x",
    "tidemark run --python .venv app.py",
    "tidemark run --gpu torchrun --nproc-per-node 8 train.py",
    "tidemark run --allocator jemalloc app.py",
    "tidemark run --to http://127.0.0.1:7070 app.py",
    "tidemark run --period 16K --json summary.json uvicorn app:main",
  ).action(run);
}

async function run(words: string[], options: RunOptions): Promise<void> {
  const { json } = options;
  await runToEnd("run", words, options, {
    outputs: json === undefined ? [] : [[json, jsonReplacing(options)]],
    recorded: (command) => ({
      ...deviceWatchOf(options),
      ...destinationOf(options),
      ...allocatorOf(options, command),
    }),
    printEnd: async (result) => {
      await tellEnd(result, options);
      return result.exitCode;
    },
  });
}

async function tellEnd(result: RunResult, options: RunOptions): Promise<void> {
  if (options.quiet === true && options.json === undefined) {
    printNotes(result.notes);
    return;
  }
  const recording = result.open();
  const document = summarize(recording, "end");
  const failsAtOnce = failedAtOnce(recording);
  // The summary's own "Not seen" section already lists most of them.
  const said: readonly string[] = options.quiet === true || failsAtOnce ? [] : document.limits;
  printNotes(result.notes.filter((note) => !said.includes(note)));
  const diagnosis = await withProgress(recording.path, "snapshots", options, (onProgress) =>
    diagnoseRecording(recording, onProgress),
  );
  if (options.json !== undefined) {
    const text = `${JSON.stringify(summaryWithVerdict(document, diagnosis, options), null, 2)}\n`;
    await writeWhole(options.json, jsonReplacing(options), (file) => writeFile(file, text));
  }
  if (options.quiet !== true && failsAtOnce) {
    printNote(failureLine(recording));
  } else if (options.quiet !== true) {
    const screen = screenOf(process.stderr);
    screen.line();
    if (options.allocator !== undefined) {
      printNote(allocatorNote(options.allocator));
    }
    printSummary(screen, summaryContext(recording, document, "end", result.recorderCpuMs), options);
    printVerdict(screen, diagnosis);
  }
  if (options.quiet !== true && isNativeFault(result.signal)) {
    printNotes(crashNotes(recording.meta.command));
  }
}

function jsonReplacing({ force }: RunOptions): Replacing {
  return { force, isOwn: ownKind("document") };
}
