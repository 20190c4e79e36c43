import { writeFileSync } from "node:fs";
import { Command, Option } from "commander";
import {
  completeRun,
  diagnoseRecording,
  orphanToComplete,
  type RunResult,
  runUnderAgent,
  summarize,
} from "../../inspect/index.js";
import { fileUnusable, programNotStarted, TidemarkError } from "../../model/errors/errors.js";
import { chooseRecordingPath, requireWritable } from "../files/recording_path.js";
import { type DeviceOptions, deviceWatchOf, withDeviceOptions } from "../options/device_options.js";
import {
  type ListOptions,
  parseBytes,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { guardDescriptor, requireLinux } from "../options/requirements.js";
import { selectSites } from "../options/select_sites.js";
import { printVerdict } from "../screens/diagnosis.js";
import { DEFAULT_SITES } from "../screens/site_ranking.js";
import { printSummary } from "../screens/summary.js";
import { summaryContext } from "../screens/summary_context.js";
import { printError, printNote, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";

interface RunOptions extends ListOptions, DeviceOptions {
  readonly output?: string;
  readonly force?: boolean;
  readonly native?: boolean;
  readonly period?: number;
  readonly follow: boolean;
  readonly json?: string;
  readonly quiet?: boolean;
  readonly debug?: boolean;
}

export function buildCommand(): Command {
  const command = new Command("run")
    .description(
      "Run a program under the agent, record where its memory goes, and sum it up on stderr at\n" +
        "its end. Its input, output, terminal, signals and exit code pass through untouched.",
    )
    .usage("[options] [--] program [arguments...]")
    .argument("<program...>", "the program and its arguments")
    .option("-o, --output <recording>", "where the recording goes (default NAME-TIME.tidemark)")
    .option("-f, --force", "overwrite the recording named by -o")
    .option("--native", "record native (C, C++, Rust) frames too")
    .option("--period <bytes>", "mean bytes between samples (default 64KiB)", parsePeriod)
    .addOption(new Option("--no-follow", "leave child processes unprofiled"))
    .passThroughOptions();
  withDeviceOptions(command);
  withListOptions(command, "sites", DEFAULT_SITES);
  withCommonOptions(command, "file");
  return withExamples(
    command,
    "tidemark run -- python app.py",
    "tidemark run -o load.tidemark --native -- python -m pytest -x",
    "tidemark run --gpu -- torchrun --nproc-per-node 8 train.py",
    "tidemark run --period 16K --json summary.json -- uvicorn app:main",
  ).action(run);
}

/** Everything here goes to stderr: stdout is the program's. */
async function run(command: string[], options: RunOptions): Promise<void> {
  requireLinux();
  const descriptor = guardDescriptor();
  // A first recorder, which memory was too short for, has left the end to this one.
  const orphan = orphanToComplete();
  const result =
    orphan === null
      ? await runProgram(command, options, descriptor)
      : await completeRun(orphan, descriptor);
  if (result.handedOver) {
    return;
  }
  // The program has ended: whatever happens to the summary, its exit code is what the shell gets.
  try {
    if (result.startFailure !== null) {
      printError(programNotStarted(command[0] ?? "", result.startFailure).message);
    } else {
      await tellEnd(result, options);
    }
  } catch (error) {
    if (!(error instanceof TidemarkError) || options.debug === true) {
      throw error;
    }
    printError(error.message);
  } finally {
    process.exitCode = result.exitCode;
    result.leave(result.exitCode);
  }
}

function runProgram(
  command: string[],
  options: RunOptions,
  guardDescriptor: number,
): Promise<RunResult> {
  const recordingPath = chooseRecordingPath(command, options);
  if (options.json !== undefined) {
    requireWritable(options.json);
  }
  return runUnderAgent({
    command,
    recordingPath,
    guardDescriptor,
    ...(options.period === undefined ? {} : { periodBytes: options.period }),
    ...deviceWatchOf(options),
    native: options.native === true,
    follow: options.follow,
  });
}

async function tellEnd(result: RunResult, options: RunOptions): Promise<void> {
  if (options.quiet === true && options.json === undefined) {
    tellNotes(result.notes);
    return;
  }
  const recording = result.open();
  const document = summarize(recording, "end");
  // The summary's own "Not seen" says most of them: once is enough.
  const said: readonly string[] = options.quiet === true ? [] : document.limits;
  tellNotes(result.notes.filter((note) => !said.includes(note)));
  if (options.json !== undefined) {
    const selected = { ...document, sites: selectSites(document.sites, options) };
    try {
      writeFileSync(options.json, `${JSON.stringify(selected, null, 2)}\n`);
    } catch (error) {
      throw fileUnusable(options.json, "write", (error as Error).message);
    }
  }
  if (options.quiet !== true) {
    const screen = screenOf(process.stderr);
    screen.line();
    const diagnosis = await withProgress(recording.path, "looks", options, (tell) =>
      diagnoseRecording(recording, tell),
    );
    printSummary(screen, summaryContext(recording, document, "end", result.recorderCpuMs), options);
    printVerdict(screen, diagnosis);
  }
}

function tellNotes(notes: readonly string[]): void {
  for (const note of notes) {
    printNote(note);
  }
}

function parsePeriod(text: string): number {
  return Math.max(1, parseBytes(text));
}
