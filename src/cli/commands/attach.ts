import { Command, InvalidArgumentError, Option } from "commander";
import {
  type AttachProgress,
  type AttachResult,
  attachAndRecord,
  commandOf,
  diagnoseRecording,
  processByName,
  summarize,
} from "../../inspect/index.js";
import { formatBytes, formatDuration, formatMilliseconds } from "../../model/base/numbers.js";
import type { Bytes, Millis, Pid } from "../../model/base/units.js";
import type { SummaryJson } from "../../model/documents/summary_document.js";
import { badUsage } from "../../model/errors/errors.js";
import { chooseRecordingPath } from "../files/recording_path.js";
import type { CommandAbout } from "../options/about.js";
import { type DestinationOptions, destinationOf, withDestination } from "../options/destination.js";
import { type DeviceOptions, deviceWatchOf, withDeviceOptions } from "../options/device_options.js";
import { withInterrupt } from "../options/interrupt.js";
import {
  type CommonOptions,
  type ListOptions,
  parseDuration,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { PERIOD_HELP, parsePeriod, periodRemarks } from "../options/period.js";
import { parsePid } from "../options/pids.js";
import { requireLinux } from "../options/requirements.js";
import { summaryWithVerdict } from "../options/select_sites.js";
import { attachProgressText } from "../screens/attach_progress.js";
import { printVerdict } from "../screens/diagnosis.js";
import { DEFAULT_SITES } from "../screens/site_ranking.js";
import { printSummary } from "../screens/summary.js";
import { summaryContext } from "../screens/summary_context.js";
import { printJson, printNote, screenOf } from "../text/output.js";
import { type StatusLine, statusLine, withProgress } from "../text/progress.js";

/** Time between two progress lines if stderr is a file or a pipe. */
const LOG_INTERVAL_MS: Millis = 15_000;

interface AttachCommandOptions
  extends CommonOptions,
    ListOptions,
    DeviceOptions,
    DestinationOptions {
  readonly for: Millis | "auto";
  readonly wait: Millis;
  readonly output?: string;
  readonly force?: boolean;
  readonly native?: boolean;
  readonly copies?: boolean;
  readonly period?: number;
  readonly follow: boolean;
  readonly children?: boolean;
  readonly name?: string;
}

export const about: CommandAbout = {
  group: "record",
  summary: "record a running process, then leave it as it was",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("attach")
    .description(
      "Record a running process, print a summary, and leave the process as it was. It is paused for\n" +
        "a few milliseconds when attaching and detaching. Child processes that run the same program are also\n" +
        "recorded. Ctrl-C ends the recording, not the process.",
    )
    .argument("[pid]", "the process", parsePid)
    .option(
      "--name <pattern>",
      "attach to the process whose command line matches, instead of a pid",
    )
    .option(
      "--for <time>",
      "how long to record, such as 60s; auto: until the verdict is settled, at most 10 min",
      parseLength,
      "auto",
    )
    .addOption(
      new Option("--wait <time>", "how long to wait for the process to run Python code")
        .default(60_000, "60s")
        .argParser(parseDuration),
    )
    .option(
      "-o, --output <recording>",
      "file to write the recording to (default NAME-TIME.tidemark)",
    )
    .option("-f, --force", "overwrite the recording named by -o")
    .option("--native", "also record native (C, C++, Rust) frames")
    .option("--copies", "also count the bytes that memcpy and memmove copy, by line")
    .option("--period <bytes>", PERIOD_HELP, parsePeriod)
    .addOption(new Option("--no-follow", "do not profile processes that it forks"))
    .option("--children", "also record Python children that run other programs")
    .option("--no-children", "do not profile children that already exist");
  withDestination(command);
  withDeviceOptions(command);
  withListOptions(command, "sites", DEFAULT_SITES);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark attach 4242 --for 60s",
    "tidemark attach --name 'gunicorn.*shop:app'",
    "tidemark attach 4242 -o load.tidemark --native",
    "tidemark attach 4242 --for 5min --json",
    "tidemark attach 4242 --gpu",
  ).action(attach);
}

async function attach(given: Pid | undefined, options: AttachCommandOptions): Promise<void> {
  requireLinux();
  const pid = requireProcess(given, options.name);
  const to = destinationOf(options);
  const recordingPath = chooseRecordingPath(commandOf(pid), options);
  const status = statusLine();
  for (const remark of options.quiet === true ? [] : periodRemarks(options.period)) {
    printNote(remark);
  }
  const result = await withInterrupt((until) =>
    attachAndRecord({
      pid,
      recordingPath,
      ...(options.period === undefined ? {} : { periodBytes: options.period }),
      ...deviceWatchOf(options),
      ...to,
      native: options.native === true,
      copies: options.copies === true,
      follow: options.follow,
      ...(options.children === undefined ? {} : { children: options.children ? "all" : "none" }),
      waitMs: options.wait,
      forMs: options.for,
      until,
      onWaiting: waitingLine(pid, options),
      ...progressReporter(pid, options, status),
      onLookup() {
        if (options.quiet !== true) {
          printNote(`left process ${pid}; looking up what holds the growing memory.`);
        }
      },
      onRecording(entered, path) {
        if (options.quiet !== true) {
          printNote(
            `recording process ${pid} (Python ${entered.version}) to ${path}; it was paused for ${formatMilliseconds(entered.longestPauseMs)}. Ctrl-C ends it.`,
          );
        }
      },
    }).finally(() => status.clear()),
  );
  await tellEnd(result, options);
}

function requireProcess(pid: Pid | undefined, name: string | undefined): Pid {
  if ((pid === undefined) === (name === undefined)) {
    throw badUsage(
      pid === undefined
        ? "attach needs <pid> or --name, for example: tidemark attach 4242"
        : "attach takes either a pid or --name, not both",
      "find the process: tidemark ps",
    );
  }
  return pid ?? processByName(name ?? "");
}

async function tellEnd(result: AttachResult, options: AttachCommandOptions): Promise<void> {
  const recording = result.open();
  const document = summarize(recording, "end");
  if (options.quiet !== true) {
    for (const note of result.notes) {
      printNote(note);
    }
    if (result.ended) {
      printNote(endedLine(document, options));
    }
  }
  const diagnosis = await withProgress(recording.path, "snapshots", options, (onProgress) =>
    diagnoseRecording(recording, onProgress),
  );
  if (options.json === true) {
    printJson(summaryWithVerdict(document, diagnosis, options));
    return;
  }
  const screen = screenOf(process.stdout);
  printSummary(screen, summaryContext(recording, document, "end", result.recorderCpuMs), options);
  printVerdict(screen, diagnosis);
  if (options.quiet !== true && !result.ended) {
    printNote(
      `process ${document.target.pid} goes on without Tidemark; it was paused for ${formatMilliseconds(result.detachPauseMs)} as Tidemark left.`,
    );
  }
}

/** "the program ended after 5.6 s, before the 30.0 s of --for had passed". */
function endedLine({ window }: SummaryJson, options: AttachCommandOptions): string {
  const early =
    options.for === "auto" ? "" : `, before the ${formatDuration(options.for)} of --for had passed`;
  return `the program ended after ${formatDuration(window.endMs - window.startMs)}${early}`;
}

/** Updates one line on a terminal; elsewhere prints a line from time to time, for logs. */
function progressReporter(
  pid: Pid,
  { quiet }: AttachCommandOptions,
  status: StatusLine,
): { progressMs: Millis; onProgress: (progress: AttachProgress) => void } {
  const onTerminal = process.stderr.isTTY;
  return {
    progressMs: quiet === true ? Number.POSITIVE_INFINITY : onTerminal ? 1_000 : LOG_INTERVAL_MS,
    onProgress(progress) {
      if (onTerminal) {
        status.show(`tidemark: ${attachProgressText(pid, progress)}`);
      } else {
        printNote(attachProgressText(pid, progress, LOG_INTERVAL_MS));
      }
    },
  };
}

/**
 * Prints why the process cannot be attached to yet: every time on a terminal, otherwise only when the reason
 * changes.
 */
function waitingLine(
  pid: Pid,
  options: AttachCommandOptions,
): (doing: string, rssBytes: Bytes) => void {
  let said = "";
  return (doing, rssBytes) => {
    if (options.quiet === true || (doing === said && !process.stderr.isTTY)) {
      return;
    }
    said = doing;
    printNote(
      `waiting for process ${pid} to run Python code: ${doing}; RSS ${formatBytes(rssBytes)}`,
    );
  };
}

function parseLength(text: string): Millis | "auto" {
  if (text === "auto") {
    return text;
  }
  try {
    return parseDuration(text);
  } catch {
    throw new InvalidArgumentError("a duration such as 30s, 5min or 2h, or auto");
  }
}
