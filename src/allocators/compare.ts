/** The comparison: every setting once in each round, in an order that rotates, until it is decided; then the document. */

import { checkedProgram } from "../inspect/index.js";
import type {
  AllocatorName,
  AllocatorsJson,
  AllocatorTrialJson,
} from "../model/documents/allocators_document.js";
import { oneLine } from "../model/errors/errors.js";
import { runInterrupted, toolMissing, toolRunFailed } from "../model/errors/tool_errors.js";
import { deploymentOf, versionObstacle } from "./apply.js";
import { changeOf, isDecided, recommend } from "./changes.js";
import { findLibrary, SETTINGS, type Setting } from "./settings.js";
import { runTrial, type Trial } from "./trial.js";

export interface Comparison {
  readonly command: readonly string[];
  /** null: more rounds of the settings that are not decided yet, up to the last of `STAGES`. */
  readonly rounds: number | null;
  /** null: every setting. glibc is always among them. */
  readonly only: readonly AllocatorName[] | null;
  readonly until: AbortSignal;
}

/** Rounds after which the settings that are decided are not run again. */
const STAGES = [5, 10, 15];

type Skipped = AllocatorsJson["skipped"][number];

/** `onProgress` counts runs. Throws TM-E091 if the program fails under plain glibc, TM-E093 if it is interrupted. */
export async function compareAllocators(
  comparison: Comparison,
  onProgress: (done: number, of: number) => Promise<void>,
): Promise<AllocatorsJson> {
  const { rounds, only, until } = comparison;
  const { command, python } = checkedProgram(comparison.command);
  const skipped: Skipped[] = [];
  const wanted = SETTINGS.filter(({ name }) => name === "glibc" || (only?.includes(name) ?? true));
  const version = python?.version ?? null;
  const settings = wanted.filter((setting) => {
    const reason = obstacle(setting, version);
    if (reason !== null) {
      skipped.push(reason);
    }
    return reason === null;
  });
  const [first] = skipped;
  if (settings.length === 1 && first !== undefined) {
    // Nothing to compare glibc with.
    throw first.install === undefined
      ? toolRunFailed(
          `${first.allocator} cannot be compared: ${first.reason}`,
          "",
          "choose another",
        )
      : toolMissing(first.allocator, first.install);
  }
  const trials = new Map<AllocatorName, Trial[]>(settings.map(({ name }) => [name, []]));
  const stages = rounds === null ? STAGES : [rounds];
  // Each stage looks at each setting once.
  const comparisons = Math.max(1, settings.length - 1) * stages.length;
  const rowsNow = () => rowsOf(trials, comparisons);
  let running = settings;
  let done = 0;
  let round = 0;
  for (const stage of stages) {
    while (round < stage) {
      round += 1;
      const first = (round - 1) % running.length;
      for (const setting of [...running.slice(first), ...running.slice(0, first)]) {
        await onProgress(
          done,
          done + running.length * (stage - round + 1) - (done % running.length),
        );
        const trial = await runTrial({ setting, round, command, until });
        if (until.aborted) {
          throw runInterrupted();
        }
        const failure = failureOf(trial);
        if (failure !== null) {
          skipped.push(failedUnder(setting, failure, trial));
          running = running.filter((other) => other !== setting);
          trials.delete(setting.name);
        } else {
          trials.get(setting.name)?.push(trial);
        }
        done += 1;
      }
    }
    const decided = new Set(
      rowsNow()
        .filter(isDecided)
        .map(({ allocator }) => allocator),
    );
    running = running.filter(({ name }) => !decided.has(name));
    if (running.length <= 1) {
      break; // glibc alone, with which the others are compared
    }
  }
  const rows = rowsNow();
  const { best, sentence } = recommend(rows);
  return {
    schema: "tidemark.allocators/1",
    command: [...command],
    rounds: round,
    trials: rows,
    best,
    recommendation: sentence,
    skipped,
    limits: limitsOf(rows),
  };
}

/** Why a setting cannot be tried here. */
function obstacle(setting: Setting, version: number | null): Skipped | null {
  const { name, library, install } = setting;
  if (library !== undefined && findLibrary(library) === null) {
    return { allocator: name, reason: "not installed", ...(install ? { install } : {}) };
  }
  const reason = versionObstacle(setting, version);
  return reason === null ? null : { allocator: name, reason };
}

function failureOf({ ran }: Trial): string | null {
  if (ran.startFailure !== null) {
    return ran.startFailure;
  }
  if (ran.exitCode !== 0) {
    return ran.signal ? `it was ended by ${ran.signal}` : `it ended with exit code ${ran.exitCode}`;
  }
  return null;
}

function failedUnder(setting: Setting, failure: string, { ran }: Trial): Skipped {
  const [last = ""] = ran.lastWords.split("\n").slice(-1);
  if (setting.name === "glibc") {
    throw toolRunFailed(
      `the program fails without any change: ${failure}`,
      last === "" ? "" : `its last line: ${oneLine(last, 200)}`,
      "name a command that ends by itself with exit code 0",
    );
  }
  return {
    allocator: setting.name,
    reason: `the program failed under it: ${failure}${last === "" ? "" : ` (${oneLine(last, 120)})`}`,
  };
}

/** `comparisons`: see `changeOf`. */
function rowsOf(
  trials: ReadonlyMap<AllocatorName, readonly Trial[]>,
  comparisons: number,
): AllocatorTrialJson[] {
  const plain = trials.get("glibc") ?? [];
  return SETTINGS.flatMap((setting) => {
    const runs = trials.get(setting.name);
    return runs === undefined ? [] : [trialOf(setting, runs, plain, comparisons)];
  });
}

function trialOf(
  setting: Setting,
  runs: readonly Trial[],
  plain: readonly Trial[],
  comparisons: number,
): AllocatorTrialJson {
  const isPlain = setting.name === "glibc";
  const change = (figure: "peakRssBytes" | "steadyRssBytes" | "cpuMs") =>
    isPlain ? undefined : changeOf(figure, [runs, plain], comparisons);
  const [peak, steady, cpu] = [change("peakRssBytes"), change("steadyRssBytes"), change("cpuMs")];
  const proven = runs.filter(({ ran }) => ran.proven).length;
  const live = runs.flatMap(({ liveBytes }) => liveBytes ?? []);
  return {
    allocator: setting.name,
    title: setting.title,
    loaded: runs.length > 0 && proven === runs.length,
    proof: proofSentence(setting, proven, runs.length),
    peakRssBytes: median(runs.map((run) => run.peakRssBytes)),
    steadyRssBytes: median(runs.map((run) => run.steadyRssBytes)),
    liveBytes: live.length === 0 ? null : median(live),
    cpuMs: median(runs.map((run) => run.cpuMs)),
    wallMs: median(runs.map((run) => run.wallMs)),
    runs: runs.map(({ ran: _, ...run }) => run),
    ...(peak === undefined ? {} : { peakChange: peak }),
    ...(steady === undefined ? {} : { steadyChange: steady }),
    ...(cpu === undefined ? {} : { cpuChange: cpu }),
    use: isPlain ? "" : `--allocator ${setting.name}`,
    deploy: deploymentOf(setting),
  };
}

function proofSentence(setting: Setting, proven: number, runs: number): string {
  const path = setting.library === undefined ? null : findLibrary(setting.library);
  const what =
    path === null
      ? "the variables are in the environment of the process"
      : `${path} is in /proc/PID/maps`;
  return `${what}: ${proven} of ${runs} runs`;
}

function limitsOf(rows: readonly AllocatorTrialJson[]): string[] {
  const unproven = rows.filter(({ loaded, runs }) => !loaded && runs.length > 0);
  const short = rows.some(({ wallMs }) => wallMs < 1_000);
  const unseen = rows.filter(({ liveBytes }) => liveBytes === null);
  return [
    ...unseen.map(({ title }) => `Live bytes are not known under: ${title}.`),
    ...unproven.map(
      ({ title }) =>
        `${title} was not seen in every run, so that its figures may be those of glibc.`,
    ),
    ...(short
      ? ["The program runs for less than a second: its figures are mostly those of its start."]
      : []),
  ];
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1] ?? 0, sorted[Math.floor(middle)] ?? 0];
  return (low + high) / 2;
}
