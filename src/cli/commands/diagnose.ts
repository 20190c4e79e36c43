import { Command, InvalidArgumentError } from "commander";
import { diagnose, type Evidence } from "../../diagnose/index.js";
import { readInterpreter } from "../../linux/index.js";
import {
  type DiagnosisJson,
  VERDICT_KINDS,
  type VerdictKind,
} from "../../model/diagnosis_document.js";
import type { Millis } from "../../model/units.js";
import { evidenceOf, watchProcess } from "../../record/index.js";
import { requireLinux } from "../installation.js";
import {
  type CommonOptions,
  type ListOptions,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options.js";
import { printJson, screenOf } from "../output.js";
import { withProgress } from "../progress.js";
import { openRecordingAt } from "../recordings.js";
import { DEFAULT_SUSPECTS, printDiagnosis } from "../screens/diagnosis.js";

interface DiagnoseOptions extends CommonOptions, ListOptions {
  readonly for: Millis;
  readonly agent: boolean;
  readonly failOn?: readonly VerdictKind[];
}

const DEFAULT_FOR = "60s";

export function buildCommand(): Command {
  const command = new Command("diagnose")
    .description(
      "The verdict: whether memory leaks, what kind of leak it is, which line makes it, how fast it\n" +
        "grows, and what to do. Of a recording, or of a live process that is watched for a time.",
    )
    .argument("<target>", "a recording, or the pid of a live process")
    .option("--for <time>", "how long to watch a live process", parseTime, parseTime(DEFAULT_FOR))
    .option("--no-agent", "watch a live process from outside alone: nothing enters it")
    .option(
      "--fail-on <kinds>",
      "leave with exit code 1 where the verdict is one of these, separated by commas",
      parseKinds,
    );
  withListOptions(command, "suspects", DEFAULT_SUSPECTS);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark diagnose app.tidemark",
    "tidemark diagnose 4242 --for 5min",
    "tidemark diagnose app.tidemark --json --fail-on python-leak,native-leak",
  ).action(run);
}

async function run(target: string, options: DiagnoseOptions): Promise<void> {
  requireLinux();
  const evidence = await gather(target, options);
  const document = diagnose(evidence);
  const { rows, leftOut } = selectRows(
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
    printDiagnosis(screenOf(process.stdout), shown, { leftOut, quiet: options.quiet === true });
  }
  if (options.failOn?.includes(document.verdict.kind)) {
    process.exitCode = 1;
  }
}

/** A number is a pid, unless a file of that name exists to be named by its path (./4242). */
async function gather(target: string, options: DiagnoseOptions): Promise<Evidence> {
  if (!/^\d+$/.test(target)) {
    const recording = openRecordingAt(target);
    return withProgress(target, "looks", options, (tell) => evidenceOf(recording, tell));
  }
  const pid = Number(target);
  const interrupt = new AbortController();
  const stop = () => interrupt.abort();
  process.once("SIGINT", stop);
  try {
    return await withProgress(`watching ${pid}`, "s", options, (tell) =>
      watchProcess(
        pid,
        {
          forMs: options.for,
          python: readInterpreter(pid)?.version ?? "",
          until: interrupt.signal,
        },
        tell,
      ),
    );
  } finally {
    process.off("SIGINT", stop);
  }
}

const UNIT_MS: Readonly<Record<string, Millis>> = { s: 1000, min: 60_000, m: 60_000, h: 3_600_000 };

/** "60s", "5min", "1h" as ms. */
function parseTime(text: string): Millis {
  const match = /^(\d+(?:\.\d+)?)(s|min|m|h)$/.exec(text.trim());
  const ms = match ? Number(match[1]) * (UNIT_MS[match[2] as string] as number) : Number.NaN;
  if (!(ms >= 1000 && ms <= 7 * 24 * 3_600_000)) {
    throw new InvalidArgumentError("a time from 1s to 168h is needed, such as 60s or 5min");
  }
  return ms;
}

function parseKinds(text: string): VerdictKind[] {
  const known: readonly string[] = VERDICT_KINDS;
  return text.split(",").map((word) => {
    const kind = word.trim();
    if (!known.includes(kind)) {
      throw new InvalidArgumentError(
        `'${kind}' is no verdict; they are ${VERDICT_KINDS.join(", ")}`,
      );
    }
    return kind as VerdictKind;
  });
}
