import { Command } from "commander";
import { coreLedgerDocument, ledgerDocument } from "../../inspect/index.js";
import type { Pid } from "../../model/base/units.js";
import type { CoreLedgerJson, LedgerJson } from "../../model/documents/ledger_document.js";
import { badUsage } from "../../model/errors/errors.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  type ListOptions,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { parsePidOrCore } from "../options/pids.js";
import { requireLinux } from "../options/requirements.js";
import { printCoreLedger, printLedger } from "../screens/ledger.js";
import { printJson, type Screen, screenOf } from "../text/output.js";
import { type FullScreenView, showFullScreen } from "../views/full_screen.js";

interface LedgerOptions extends CommonOptions, ListOptions {
  readonly children?: boolean;
  readonly watch?: boolean;
  readonly cheap?: boolean;
}

const SHOWN_CHILDREN = 20;
const WATCH_MS = 1000;

export const about: CommandAbout = {
  group: "processes",
  summary: "show where each byte of a process's RSS is",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("ledger")
    .description(
      "Where each byte of a process's resident memory (RSS) is: Python objects, malloc, libraries,\n" +
        "files, stacks... The parts add up to RSS exactly. Reads from outside; the process is not paused.\n" +
        "For a core file: where each byte in the file belongs.",
    )
    .argument("<target>", "process id, Python or not, or path of a core file", parsePidOrCore)
    .option("--children", "also show its descendants, with shared and private dirty memory")
    .option("--watch", "refresh every second, until q or Ctrl-C")
    .option("--cheap", "read a sample of pools: a few ms for any heap size");
  withListOptions(command, "children", SHOWN_CHILDREN);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark ledger 4242",
    "tidemark ledger 4242 --children --top 5",
    "tidemark ledger 4242 --watch",
    "tidemark ledger 4242 --json",
    "tidemark ledger core.4242",
  ).action(ledger);
}

async function ledger(target: Pid | string, options: LedgerOptions): Promise<void> {
  requireLinux();
  if (typeof target === "string") {
    showCore(target, options);
    return;
  }
  const pid = target;
  if (options.watch === true && options.json !== true) {
    await showFullScreen(watchView(pid, options));
    return;
  }
  const seen = ledgerDocument(
    pid,
    options.cheap === true ? "cheap" : "full",
    wantsChildren(options),
  );
  if (options.json === true) {
    printJson({ ...seen, children: select(seen, options).rows } satisfies LedgerJson);
  } else {
    show(screenOf(process.stdout), seen, options);
  }
}

function showCore(file: string, options: LedgerOptions): void {
  const alive = (["children", "watch", "cheap"] as const).find((name) => options[name] === true);
  if (alive !== undefined) {
    throw badUsage(`--${alive} needs a running process`, "omit it, or give a pid");
  }
  const seen = coreLedgerDocument(file);
  if (options.json === true) {
    printJson(seen satisfies CoreLedgerJson);
  } else {
    printCoreLedger(screenOf(process.stdout), seen, options.quiet === true);
  }
}

function wantsChildren({ children }: LedgerOptions): boolean {
  return children === true;
}

function watchView(pid: Pid, options: LedgerOptions): FullScreenView<LedgerJson, "watching"> {
  return {
    name: "ledger --watch",
    instead: `tidemark ledger ${pid}`,
    intervalMs: WATCH_MS,
    choice: "watching",
    // A full walk every second would use a whole core; bins and arenas give the same result within a few percent.
    poll: () => ledgerDocument(pid, "cheap", wantsChildren(options)),
    draw: (screen, seen) => show(screen, seen, options),
    press: (choice, input, key) => (input === "q" || key.escape ? null : choice),
  };
}

function show(screen: Screen, seen: LedgerJson, options: LedgerOptions): void {
  const { rows, ...shown } = select(seen, options);
  printLedger(screen, { ...seen, children: rows }, { quiet: options.quiet === true, ...shown });
}

function select(seen: LedgerJson, options: LedgerOptions) {
  return selectRows(
    seen.children,
    options,
    SHOWN_CHILDREN,
    (child) => child.rssBytes,
    (child) => child.command.join(" "),
  );
}
