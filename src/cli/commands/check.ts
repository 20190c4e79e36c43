import { rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { Command, Option } from "commander";
import {
  type Checked,
  checkRecording,
  type Gates,
  junitXml,
  type RunResult,
} from "../../gates/index.js";
import type { Bytes } from "../../model/base/units.js";
import { badUsage } from "../../model/errors/errors.js";
import {
  appendToStepSummary,
  isOwnBaseline,
  isOwnJunit,
  readBaseline,
} from "../files/check_files.js";
import { ownKind, type Replacing } from "../files/own_files.js";
import { writeWhole } from "../files/write_whole.js";
import type { CommandAbout } from "../options/about.js";
import { parseGrowth, parseLimit } from "../options/gates.js";
import { parseJsonFile, withExamples } from "../options/options.js";
import { PERIOD_HELP, parsePeriod } from "../options/period.js";
import { withProgram } from "../options/program_words.js";
import { checkMarkdown, gateLines, printCheck } from "../screens/check.js";
import { printNotes, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";
import { type ProgramOptions, runToEnd } from "./run_to_end.js";

interface CheckOptions extends ProgramOptions {
  readonly peak?: Bytes;
  /** Bytes per hour. */
  readonly growth?: number;
  readonly leak?: boolean;
  readonly baseline?: string;
  readonly saveBaseline?: string;
  readonly allowUndecided?: boolean;
  readonly json?: string;
  readonly junit?: string;
}

/** Exit code for a finding; it replaces the program's. */
const FINDING = 1;

export const about: CommandAbout = {
  group: "record",
  summary: "run a program and fail if it takes, keeps or leaks too much memory",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("check")
    .description(
      "Run a program and compare its memory with limits or with a baseline: a gate for CI. Its\n" +
        "output and its exit code pass through; with a finding the exit code is 1, and five lines on\n" +
        "stderr name the gate, the figure, the line of code, what holds the memory, and the next command.",
    )
    .option(
      "--peak <bytes>",
      "fail if the program and its children use more than this, such as 2GiB",
      parseLimit,
    )
    .option(
      "--growth <rate>",
      "fail if memory grows faster after the first third of the run, such as 10MiB/h; warm-up and caches that stop growing pass",
      parseGrowth,
    )
    .option("--leak", "fail if the verdict is a leak")
    .option(
      "--baseline <file>",
      "fail if a figure is above its range in this file, which --save-baseline wrote",
    )
    .option(
      "--save-baseline <file>",
      "write the memory that the program used as a baseline, a small text file",
    )
    .option("--allow-undecided", "pass a gate that cannot decide because the run was too short")
    .option("-o, --output <recording>", "keep the recording here (default: kept after a finding)")
    .option("-f, --force", "overwrite existing output files")
    .option("--native", "also record native (C, C++, Rust) frames")
    .option("--period <bytes>", PERIOD_HELP, parsePeriod)
    .addOption(new Option("--no-follow", "do not profile child processes"))
    .option("--junit <file>", "write the gates as JUnit XML")
    .option("--json <file>", "write the result as JSON to this file", parseJsonFile)
    .option("--quiet", "print nothing about gates that pass")
    .option("--debug", "show the stack of an error of Tidemark");
  withProgram(command);
  return withExamples(
    command,
    "tidemark check --peak 2GiB -- python train.py --epochs 1",
    "tidemark check --growth 10MiB/h --leak load_test.py",
    "tidemark check --save-baseline memory.txt -m pytest tests",
    "tidemark check --baseline memory.txt --junit memory.xml -m pytest tests",
  ).action(check);
}

async function check(words: string[], options: CheckOptions): Promise<void> {
  const gates = gatesOf(options);
  const { baseline, saveBaseline } = options;
  await runToEnd("check", words, options, {
    outputs: outputsOf(options),
    inputs: baseline === undefined || baseline === saveBaseline ? [] : [baseline],
    printEnd: async (result) =>
      (await checkEnd(result, gates, options)) ? result.exitCode : FINDING,
    exitCodeOnFailure: FINDING, // what cannot be checked has not passed
  });
}

function gatesOf(options: CheckOptions): Gates {
  const { peak, growth, leak, baseline, saveBaseline, allowUndecided } = options;
  if ((peak ?? growth ?? leak ?? baseline ?? saveBaseline) === undefined) {
    throw badUsage(
      "check has nothing to compare with",
      "add --peak 2GiB, --growth 10MiB/h, --leak, --baseline FILE or --save-baseline FILE",
    );
  }
  return {
    leak: leak === true,
    allowUndecided: allowUndecided === true,
    ...(peak === undefined ? {} : { peakBytes: peak }),
    ...(growth === undefined ? {} : { growthBytesPerHour: growth }),
    ...(baseline === undefined ? {} : { baseline: readBaseline(baseline) }),
  };
}

/** The files besides the recording, and what each may overwrite. */
function outputsOf({ json, junit, saveBaseline, force }: CheckOptions): [string, Replacing][] {
  const outputs: [string | undefined, Replacing["isOwn"]][] = [
    [json, ownKind("document")],
    [junit, isOwnJunit],
    [saveBaseline, isOwnBaseline],
  ];
  return outputs.flatMap(([path, isOwn]) =>
    path === undefined ? [] : [[path, { force, isOwn }] as [string, Replacing]],
  );
}

/** @returns whether every gate passed */
async function checkEnd(result: RunResult, gates: Gates, options: CheckOptions): Promise<boolean> {
  const recording = result.open();
  const checked = await withProgress(recording.path, "snapshots", options, (onProgress) =>
    checkRecording(recording, { gates, exitCode: result.exitCode }, onProgress),
  );
  const { passed } = checked.document;
  const isKept = options.output !== undefined || !passed;
  const document = isKept ? checked.document : { ...checked.document, recording: null };
  if (!isKept) {
    rmSync(result.recordingPath, { force: true });
  }
  printNotes(result.notes);
  if (!passed || options.quiet !== true) {
    printNotes(checked.remarks);
    printCheck(screenOf(process.stderr), document);
  }
  appendToStepSummary(checkMarkdown(document));
  await writeOutputs({ ...checked, document }, options);
  return passed;
}

/** A baseline of a program that failed, or that did not pass the other gates, would hide the next finding. */
async function writeOutputs({ document, baseline }: Checked, options: CheckOptions): Promise<void> {
  const { passed, exitCode } = document;
  const texts = new Map([
    [options.json, `${JSON.stringify(document, null, 2)}\n`],
    [options.junit, junitXml(document, (gate) => gateLines(document, gate))],
    ...(passed && exitCode === 0 ? [[options.saveBaseline, baseline] as const] : []),
  ]);
  for (const [path, replacing] of outputsOf(options)) {
    const text = texts.get(path);
    if (text === undefined) {
      const why = passed ? `the program ended with exit code ${exitCode}` : "a gate failed";
      printNotes([`${path} was not written: ${why}`]);
    } else {
      await writeWhole(path, replacing, (file) => writeFile(file, text));
    }
  }
}
