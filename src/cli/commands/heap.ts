import { writeFileSync } from "node:fs";
import { Command, InvalidArgumentError, Option } from "commander";
import { heapDiffDocument, heapDiffPage, heapDocument, heapPage } from "../../inspect/index.js";
import { formatBytes, formatCount } from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import type { HeapDiffJson, HeapJson } from "../../model/documents/heap/heap_document.js";
import { encodeHeap } from "../../model/documents/heap/heap_file.js";
import type {
  HeapDiffPageDocument,
  HeapPageDocument,
} from "../../model/documents/heap/heap_page.js";
import { badUsage } from "../../model/errors/errors.js";
import { ownKind, type Replacing, requireReplaceable } from "../files/own_files.js";
import { writeReport } from "../files/report_page.js";
import { requireOtherFile, writeWhole } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  inOrderOf,
  type ListOptions,
  type SelectedRows,
  selectRows,
  withCommonOptions,
  withExamples,
  withForceOption,
  withListOptions,
} from "../options/options.js";
import { requireLinux } from "../options/requirements.js";
import { DEFAULT_CHANGES, DEFAULT_ROWS, printHeap, printHeapDiff } from "../screens/heap.js";
import { dotOf } from "../screens/heap_dot.js";
import { printJson, printNote, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";

interface HeapOptions extends CommonOptions, ListOptions {
  readonly retained?: boolean;
  readonly to?: string;
  readonly exact?: boolean;
  readonly maxPause: Millis;
  readonly values?: boolean;
  readonly format: "text" | "dot";
  readonly save?: string;
  readonly output?: string;
  readonly force?: boolean;
}

interface HeapDiffOptions extends CommonOptions, ListOptions {
  readonly output?: string;
  readonly force?: boolean;
}

export const about: CommandAbout = {
  group: "processes",
  summary: "list Python objects by type, and what holds them",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("heap")
    .description(
      "The Python objects of a running program or of its core file, by type. They are read from outside,\n" +
        "without a pause. With --retained or --to the program is paused to copy its heap (about 300 ms per GiB).",
    )
    .argument("<target>", "process id, or path of a core file")
    .option("--retained", "show what each type and container keeps alive, and what holds it")
    .option(
      "--to <what>",
      "paths from roots to objects of a type (deque is enough for collections.deque), or to one at 0x...",
    )
    .option("--exact", "pause the program while counting")
    .addOption(
      new Option("--max-pause <time>", "longest allowed pause of the program, such as 500ms or 2s")
        .default(500, "500ms")
        .argParser(parsePause),
    )
    .addOption(
      new Option("--format <format>", "with --to: dot writes a graph for graphviz")
        .choices(["text", "dot"])
        .default("text"),
    )
    .option("--values", "with --to 0x...: show the text of a str or the value of a number")
    .option("--save <file>", "save the result for heap diff")
    .option("-o, --output <file>", "write an interactive page of memory by holder");
  withForceOption(command);
  withListOptions(command, "types (with --to: paths)", DEFAULT_ROWS);
  withCommonOptions(command, "stdout");
  // Options after "diff" belong to it, even those with the same names.
  command.enablePositionalOptions().addCommand(buildDiff());
  return withExamples(
    command,
    "tidemark heap 4242",
    "tidemark heap 4242 --retained --save before.heap",
    "tidemark heap 4242 -o heap.html",
    "tidemark heap 4242 --to collections.deque",
    "tidemark heap core.4242 --to app.Session --format dot | dot -Tsvg > session.svg",
    "tidemark heap diff before.heap after.heap",
  ).action(heap);
}

function buildDiff(): Command {
  const command = new Command("diff")
    .summary("compare two saved heaps")
    .description("What appeared, grew, shrank and disappeared between two files of heap --save.")
    .argument("<before>", "file of heap --save")
    .argument("<after>", "file of heap --save, later")
    .option("-o, --output <file>", "write an interactive page");
  withForceOption(command);
  withListOptions(command, "types and holders", DEFAULT_CHANGES);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark heap diff before.heap after.heap",
    "tidemark heap diff before.heap after.heap --json",
    "tidemark heap diff before.heap after.heap -o diff.html",
  ).action(diff);
}

async function heap(target: string, options: HeapOptions): Promise<void> {
  requireLinux();
  if (options.format === "dot" && (options.to === undefined || options.json === true)) {
    throw badUsage("--format dot draws the paths that --to finds", "add --to TYPE, without --json");
  }
  if (options.values === true && !/^0x/i.test(options.to ?? "")) {
    throw badUsage("--values shows the value of one object", "add --to 0x..., its address");
  }
  if (options.output !== undefined && options.to !== undefined) {
    throw badUsage(
      "-o writes a page of the whole heap",
      "omit --to: the page has paths to every type",
    );
  }
  for (const other of [target, options.save]) {
    if (options.output !== undefined && other !== undefined) {
      requireOtherFile(options.output, other);
    }
  }
  requireOutputs(options);
  const quiet = options.quiet === true;
  const seen = await heapDocument({
    target,
    exact: options.exact === true,
    graph: options.retained === true,
    maxPauseMs: options.maxPause,
    ...(options.to === undefined ? {} : { to: options.to }),
    wantsValue: options.values === true,
    wantsTree: options.output !== undefined,
    draw: options.format === "dot" ? dotOf : null,
    onPlan: (objects, bytes) => {
      if (!quiet) {
        printNote(
          `a graph of about ${formatCount(objects)} objects takes about ${formatBytes(bytes)} of memory here`,
        );
      }
    },
  });
  const { document, dot, value } = seen;
  if (options.save !== undefined) {
    await save(options.save, document, options);
  }
  if (options.output !== undefined) {
    await writeHeapPage(heapPage(target, seen), options.output, options);
    return;
  }
  const { shown, leftOut, unmatched } = chosenRows(document, options);
  if (dot !== null) {
    process.stdout.write(dot);
  } else if (options.json === true) {
    printJson({ ...shown, ...(value === null ? {} : { value }) });
  } else {
    printHeap(screenOf(process.stdout), shown, { quiet, leftOut, unmatched, value });
  }
}

/** The paths, if they were requested, otherwise the types that the list options select. */
function chosenRows(
  document: HeapJson,
  options: HeapOptions,
): { shown: HeapJson } & Omit<SelectedRows<unknown>, "rows"> {
  const top = options.json === true ? 0 : DEFAULT_ROWS;
  if (document.paths !== undefined) {
    const { rows, ...others } = selectRows(
      document.paths,
      options,
      top,
      (row) => row.retainedBytes,
      (row) => [...row.path, row.to].join(" -> "),
    );
    return { shown: { ...document, paths: rows }, ...others };
  }
  const { rows, ...others } = selectRows(
    document.types,
    options,
    top,
    (row) => Math.max(row.bytes, row.retainedBytes ?? 0),
    (row) => row.type,
  );
  return { shown: { ...document, types: rows }, ...others };
}

/** Checked before the process is paused, so that no pause is wasted. */
function requireOutputs(options: HeapOptions): void {
  if (options.save !== undefined) {
    requireReplaceable(options.save, heapReplacing(options));
  }
  if (options.output !== undefined) {
    requireReplaceable(options.output, pageReplacing(options));
  }
}

function heapReplacing({ force }: HeapOptions): Replacing {
  return { force, isOwn: ownKind("saved heap") };
}

async function save(path: string, document: HeapJson, options: HeapOptions): Promise<void> {
  const bytes = encodeHeap(document);
  await writeWhole(path, heapReplacing(options), async (place) => writeFileSync(place, bytes));
}

async function diff(a: string, b: string, options: HeapDiffOptions): Promise<void> {
  const whole = heapDiffDocument(a, b);
  if (options.output !== undefined) {
    for (const file of [a, b]) {
      requireOtherFile(options.output, file);
    }
    await writeHeapPage(heapDiffPage(whole), options.output, options);
    return;
  }
  const choose = <Row extends { readonly type: string; readonly growthBytes: number }>(
    rows: readonly Row[],
    textOf: (row: Row) => string,
  ) =>
    selectRows(
      rows.toSorted((x, y) => Math.abs(y.growthBytes) - Math.abs(x.growthBytes)),
      options,
      options.json === true ? 0 : DEFAULT_CHANGES,
      (row) => row.growthBytes,
      textOf,
    );
  const types = choose(
    whole.types.filter(({ change }) => options.json === true || change !== "same"),
    (row) => row.type,
  );
  const holders = choose(
    whole.holders.filter(({ change }) => options.json === true || change !== "same"),
    (row) => `${row.path.join(" ")} ${row.type}`,
  );
  const document: HeapDiffJson = {
    ...whole,
    types: inOrderOf(whole.types, types.rows),
    holders: inOrderOf(whole.holders, holders.rows),
  };
  if (options.json === true) {
    printJson(document);
  } else {
    printHeapDiff(screenOf(process.stdout), document, {
      quiet: options.quiet === true,
      typesLeftOut: types.leftOut,
      holdersLeftOut: holders.leftOut,
      empty:
        types.rows.length + holders.rows.length > 0
          ? undefined
          : (types.unmatched ?? holders.unmatched ?? "nothing changed"),
    });
  }
}

/** "500ms", "2s", "250" (ms). */
function parsePause(text: string): Millis {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s)?$/.exec(text.trim());
  const ms = match ? Number(match[1]) * (match[2] === "s" ? 1000 : 1) : Number.NaN;
  if (!(ms > 0 && ms <= 600_000)) {
    throw new InvalidArgumentError("a duration such as 500ms or 2s, at most 10 minutes");
  }
  return ms;
}

/** Checks which file a page may replace, also before a process is paused. */
function pageReplacing({ force }: { readonly force?: boolean }): Replacing {
  return { force, isOwn: ownKind("page") };
}

/** Writes a page and prints its path. Throws TM-E004, TM-E012. */
async function writeHeapPage(
  document: HeapPageDocument | HeapDiffPageDocument,
  output: string,
  options: CommonOptions & { readonly force?: boolean },
): Promise<void> {
  await writeWhole(output, pageReplacing(options), (file) =>
    withProgress(output, "MiB", options, (onProgress) => writeReport(document, file, onProgress)),
  );
  sayWritten("html", [output], options);
}
