import { Command, InvalidArgumentError } from "commander";
import { diffDocument, summarize } from "../../inspect/index.js";
import type { Bytes } from "../../model/base/units.js";
import type { SummaryJson } from "../../model/documents/summary_document.js";
import { badUsage, nothingThere } from "../../model/errors/errors.js";
import type { LineFigures } from "../../model/profile/imported.js";
import { openRecordingAt, parseMoment, seenAt, splitMoment } from "../files/recordings.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  inOrderOf,
  type ListOptions,
  parseBytes,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import {
  type ByOption,
  type WhereOption,
  withByOption,
  withWhereOption,
} from "../options/row_options.js";
import { byAmount, DEFAULT_GROWTHS, growthOver, printDiff } from "../screens/diff.js";
import { printJson, printNote, screenOf } from "../text/output.js";

interface DiffOptions extends CommonOptions, ListOptions, WhereOption, ByOption {
  /** The largest growth that does not fail. */
  readonly failOn?: Bytes;
}

export const about: CommandAbout = {
  group: "recordings",
  summary: "show what grew between two recordings, or two times of one",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("diff")
    .description(
      "What grew between two recordings, or between two moments of one. Append @MOMENT to choose\n" +
        "a moment: peak, end, 90s after the start, or a date.",
    )
    .argument("<before>", "RECORDING or RECORDING@MOMENT")
    .argument("<after>", "RECORDING or RECORDING@MOMENT");
  command.option(
    "--fail-on <growth>",
    "exit code 1 if live memory, in total or of one source line, grew by more than this and by more " +
      "than its error, for example growth=5MiB",
    parseFailOn,
  );
  withWhereOption(command);
  withByOption(command, "growth", "thread, process, rank, label, domain");
  withListOptions(command, "sites", DEFAULT_GROWTHS);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark diff before.tidemark after.tidemark",
    "tidemark diff app.tidemark@30s app.tidemark@end --top 20",
    "tidemark diff app.tidemark@peak app.tidemark --json",
    "tidemark diff app.tidemark@30s app.tidemark --by thread",
    "tidemark diff main.tidemark branch.tidemark --fail-on growth=5MiB",
  ).action(diff);
}

function diff(a: string, b: string, options: DiffOptions): void {
  if (a === b) {
    throw badUsage("both sides are the same recording at the same moment", "add @MOMENT to one");
  }
  const [sideA, sideB] = [readSide(a, options), readSide(b, options)];
  if (sideA.file === sideB.file && sideA.summary.atMs === sideB.summary.atMs) {
    throw nothingThere(
      `${a} and ${b} refer to the same snapshot of the profile`,
      "a short run has few snapshots: choose moments further apart",
    );
  }
  const document = diffDocument(sideA, sideB);
  if (document.figure === "unknown" && options.failOn !== undefined) {
    throw nothingThere(
      `${a} and ${b} have no figure in common that --fail-on could compare`,
      "one of them was imported from a file without such figures; summary shows what each contains",
    );
  }
  if (options.json === true) {
    const chosen = selectRows(
      document.sites.toSorted(byAmount),
      options,
      0,
      (site) => site.growthBytes,
      (site) =>
        site.stack.map((frame) => `${frame.function} ${frame.file}:${frame.line}`).join(" "),
    );
    printJson({ ...document, sites: inOrderOf(document.sites, chosen.rows) });
  } else {
    printDiff(screenOf(process.stdout), document, [sideA.name, sideB.name], options);
  }
  const over = options.failOn === undefined ? null : growthOver(document, options.failOn);
  if (over !== null) {
    printNote(over);
    process.exitCode = 1;
  }
}

function parseFailOn(text: string): Bytes {
  const size = /^growth=(.+)$/.exec(text)?.[1];
  if (size === undefined) {
    throw new InvalidArgumentError("a limit such as growth=5MiB");
  }
  return parseBytes(size);
}

interface Side {
  readonly file: string;
  readonly name: string;
  readonly summary: SummaryJson;
  readonly isPeak: boolean;
  readonly lines?: readonly LineFigures[];
}

function readSide(argument: string, options: WhereOption & ByOption): Side {
  const { path, at } = splitMoment(argument);
  const recording = openRecordingAt(path);
  const { moment, name } = parseMoment(at ?? "end", recording);
  const summary = summarize(recording, moment, options);
  const lines = recording.meta.imported?.lines;
  const side = {
    file: path,
    name: `${path} at ${seenAt(name, { atMs: summary.atMs, startMs: recording.startMs })}`,
    summary,
    isPeak: moment === "peak",
  };
  return { ...side, ...(lines === undefined ? {} : { lines }) };
}
