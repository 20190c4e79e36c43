import { Command } from "commander";
import type { LedgerJson } from "../../model/ledger_document.js";
import type { Pid } from "../../model/units.js";
import { requireLinux } from "../installation.js";
import { lookAtLedger } from "../ledger_look.js";
import {
  type CommonOptions,
  type ListOptions,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options.js";
import { printJson, type Screen, screenOf } from "../output.js";
import { parsePid } from "../pids.js";
import { printLedger } from "../screens/ledger.js";
import { type FullScreenView, showFullScreen } from "../views/full_screen.js";

interface LedgerOptions extends CommonOptions, ListOptions {
  readonly children?: boolean;
  readonly watch?: boolean;
  readonly cheap?: boolean;
}

const SHOWN_CHILDREN = 20;
const WATCH_MS = 1000;

export function buildCommand(): Command {
  const command = new Command("ledger")
    .description(
      "Where each byte of a process's resident memory (RSS) is: Python's objects, malloc, libraries,\n" +
        "files, stacks...; the parts add up to it exactly. Read from outside, the process runs on.",
    )
    .argument("<pid>", "the process, Python or not", parsePid)
    .option("--children", "its descendants too, with shared and private dirty memory")
    .option("--watch", "look again every second, until q or Ctrl-C")
    .option("--cheap", "arenas and free lists only: some ms, whatever the heap");
  withListOptions(command, "children", SHOWN_CHILDREN);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark ledger 4242",
    "tidemark ledger 4242 --children --top 5",
    "tidemark ledger 4242 --watch",
    "tidemark ledger 4242 --json",
  ).action(ledger);
}

async function ledger(pid: Pid, options: LedgerOptions): Promise<void> {
  requireLinux();
  if (options.watch === true && options.json !== true) {
    await showFullScreen(watchView(pid, options));
    return;
  }
  const seen = lookAtLedger(pid, options.cheap === true ? "cheap" : "full", wantsChildren(options));
  if (options.json === true) {
    printJson({ ...seen, children: select(seen, options).rows } satisfies LedgerJson);
  } else {
    show(screenOf(process.stdout), seen, options);
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
    // The whole walk each second would cost a core: bins and arenas tell the same within a few percent.
    look: () => lookAtLedger(pid, "cheap", wantsChildren(options)),
    draw: (screen, seen) => show(screen, seen, options),
    press: (choice, input, key) => (input === "q" || key.escape ? null : choice),
  };
}

function show(screen: Screen, seen: LedgerJson, options: LedgerOptions): void {
  const { rows, leftOut } = select(seen, options);
  printLedger(screen, { ...seen, children: rows }, { quiet: options.quiet === true, leftOut });
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
