import { basename } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import {
  diagnoseProcess,
  diagnoseRecording,
  diagnoseSnapshot,
  isSnapshot,
} from "../../inspect/index.js";
import { didYouMean } from "../../model/base/near_miss.js";
import { formatDurationBriefly } from "../../model/base/numbers.js";
import { shellWord } from "../../model/base/shell_word.js";
import type { Millis, OnProgress, Pid } from "../../model/base/units.js";
import {
  type DiagnosisJson,
  VERDICT_KINDS,
  type VerdictKind,
} from "../../model/documents/diagnosis_document.js";
import { badUsage, nothingThere } from "../../model/errors/errors.js";
import { isUnknown } from "../../model/profile/imported.js";
import { openRecordingAt, sayMissing } from "../files/recordings.js";
import type { CommandAbout } from "../options/about.js";
import { withInterrupt } from "../options/interrupt.js";
import {
  type CommonOptions,
  type ListOptions,
  parseDuration,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { requireLinux } from "../options/requirements.js";
import { type WhereOption, withWhereOption } from "../options/row_options.js";
import { DEFAULT_SUSPECTS, printDiagnosis } from "../screens/diagnosis.js";
import { printJson, printNote, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";

interface DiagnoseOptions extends CommonOptions, ListOptions, WhereOption {
  readonly for?: Millis;
  readonly agent: boolean;
  readonly probe?: boolean;
  readonly failOn?: readonly VerdictKind[];
}

const DEFAULT_FOR: Millis = 60_000;

export const about: CommandAbout = {
  group: "recordings",
  summary: "report whether memory leaks, where, how fast, and what to do",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("diagnose")
    .description(
      "The verdict: whether memory leaks, what kind of leak it is, which line causes it, how fast it\n" +
        "grows, and what to do. Reads a recording, a live process (watched for a while), or a snapshot of\n" +
        "PyTorch's device allocator.",
    )
    .argument("<target>", "a recording, the pid of a live process, or an allocator snapshot")
    .option("--for <time>", "how long to watch a live process (default 60s)", parseDuration)
    .option("--no-agent", "watch a live process only from outside; nothing is loaded into it")
    .option(
      "--probe",
      "at the end, run gc.collect() and malloc_trim(0) in the live process and report what they free",
    )
    .addOption(
      new Option(
        "--fail-on <kinds>",
        "exit code 1 if the verdict is one of these, separated by commas",
      )
        .choices(VERDICT_KINDS)
        .argParser(parseKinds),
    );
  withWhereOption(command);
  withListOptions(command, "suspects", DEFAULT_SUSPECTS);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark diagnose app.tidemark",
    "tidemark diagnose 4242 --for 5min",
    "tidemark diagnose snapshot.pickle",
    "tidemark diagnose 4242 --probe",
    "tidemark diagnose 4242 --no-agent",
    "tidemark diagnose app.tidemark --where label=ingest",
    "tidemark diagnose app.tidemark --json --fail-on python-leak,native-leak",
  ).action(run);
}

async function run(target: string, options: DiagnoseOptions): Promise<void> {
  requireLinux();
  refuseProbe(target, options);
  refuseWatch(target, options);
  refuseWhere(target, options);
  const document = await diagnose(target, options);
  const { rows, leftOut, unmatched } = selectRows(
    document.suspects,
    options,
    options.json === true ? 0 : DEFAULT_SUSPECTS,
    (suspect) => suspect.liveBytes,
    (suspect) => suspect.stack.map((f) => `${f.function} ${f.file}:${f.line}`).join(" "),
  );
  const shown: DiagnosisJson = { ...document, suspects: rows };
  if (options.json === true) {
    printJson(shown);
  } else {
    printDiagnosis(screenOf(process.stdout), shown, {
      leftOut,
      unmatched,
      quiet: options.quiet === true,
    });
  }
  if (options.failOn?.includes(document.verdict.kind)) {
    process.exitCode = 1;
  }
}

/** A probe runs code in the program, so it needs a live process and permission to enter it. */
function refuseProbe(target: string, { agent, probe }: DiagnoseOptions): void {
  if (probe && (!agent || !isPid(target))) {
    throw badUsage(
      agent
        ? `--probe needs a live process, and ${target} is not a process id`
        : "--probe runs code in the process, which --no-agent forbids",
      "tidemark diagnose PID --probe",
    );
  }
}

/** A file already contains its observations, so there is nothing to watch. */
function refuseWatch(target: string, options: DiagnoseOptions): void {
  const given = options.for !== undefined ? "--for" : options.agent ? "" : "--no-agent";
  if (given !== "" && !isPid(target)) {
    throw badUsage(
      `${given} applies to a live process, and ${target} is not a process id`,
      `leave ${given} out, or name a process: tidemark diagnose PID ${given}${given === "--for" ? " 60s" : ""}`,
    );
  }
}

/** Only a recording has label values to select from. */
function refuseWhere(target: string, { where = [] }: DiagnoseOptions): void {
  if (where.length > 0 && (isPid(target) || isSnapshot(target))) {
    throw badUsage(
      `--where selects from a recording, and ${target} is not a recording`,
      isPid(target)
        ? `record it first: tidemark attach ${target} -o app.tidemark, then: tidemark diagnose app.tidemark --where KEY=VALUE`
        : "leave it out",
    );
  }
}

function isPid(target: string): boolean {
  return /^\d+$/.test(target);
}

/** A number is a pid; a file with a number as its name is given by a path (./4242). */
function diagnose(target: string, options: DiagnoseOptions): Promise<DiagnosisJson> {
  if (isSnapshot(target)) {
    return withProgress(basename(target), "MiB", options, (onProgress) =>
      diagnoseSnapshot(target, onProgress),
    );
  }
  if (isPid(target)) {
    return diagnosePid(Number(target), options);
  }
  const recording = openRecordingAt(target);
  const { imported } = recording.meta;
  if (isUnknown(imported, "rss")) {
    throw nothingThere(
      `${target}, imported from ${imported?.tool}, has no RSS over time: there is no verdict`,
      `see what it contains: tidemark summary ${shellWord(target)}`,
    );
  }
  if (options.quiet === true && options.json !== true) {
    sayMissing(recording); // only the verdict is printed
  }
  return withProgress(target, "snapshots", options, (onProgress) =>
    diagnoseRecording(recording, onProgress, options.where),
  );
}

function diagnosePid(pid: Pid, options: DiagnoseOptions): Promise<DiagnosisJson> {
  const { for: forMs = DEFAULT_FOR, agent, probe = false } = options;
  return withInterrupt((until) =>
    withProgress(`watching ${pid}`, "s", options, (onProgress) =>
      diagnoseProcess(
        pid,
        { forMs, agent, probe, until, onRefusal: (reason) => sayRefusal(reason, options) },
        announced(pid, options, onProgress),
      ),
    ),
  );
}

/** At once, because the reader may want to end the watch and remove the obstacle. */
function sayRefusal(reason: string, { quiet }: DiagnoseOptions): void {
  if (quiet !== true) {
    printNote(`${reason} It is watched from outside instead, which names no lines.`);
  }
}

/** Without a terminal, one line replaces the progress display; it is not printed if the process is refused. */
function announced(pid: Pid, options: DiagnoseOptions, onProgress: OnProgress): OnProgress {
  let silent = options.quiet !== true && !process.stderr.isTTY;
  return (done, of) => {
    if (silent && done > 0) {
      const how = options.agent ? "" : " from outside";
      printNote(
        `watching process ${pid}${how} for ${formatDurationBriefly(options.for ?? DEFAULT_FOR)}; Ctrl-C ends it early`,
      );
      silent = false;
    }
    return onProgress(done, of);
  };
}

function parseKinds(text: string): VerdictKind[] {
  const known: readonly string[] = VERDICT_KINDS;
  return text.split(",").map((word) => {
    const kind = word.trim();
    if (!known.includes(kind)) {
      const guess = didYouMean(kind, VERDICT_KINDS) || `they are ${VERDICT_KINDS.join(", ")}`;
      throw new InvalidArgumentError(
        `verdicts such as python-leak,native-leak, not '${kind}' (${guess})`,
      );
    }
    return kind as VerdictKind;
  });
}
