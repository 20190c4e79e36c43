import { Command } from "commander";
import { Collector, readPolicy, watchDocument } from "../../collect/index.js";
import { badUsage } from "../../model/errors/errors.js";
import { defaultWatchFolder } from "../files/server_files.js";
import type { CommandAbout } from "../options/about.js";
import {
  type DestinationOptions,
  destinationOf,
  serverOf,
  withDestination,
} from "../options/destination.js";
import { withInterrupt } from "../options/interrupt.js";
import { type CommonOptions, withCommonOptions, withExamples } from "../options/options.js";
import { requireLinux } from "../options/requirements.js";
import { printWatchTable, watchEventText } from "../screens/watch.js";
import { printJson, printNote, screenOf } from "../text/output.js";

interface WatchCommandOptions extends CommonOptions, DestinationOptions {
  readonly once?: boolean;
  readonly check?: boolean;
  readonly config?: string;
  readonly folder?: string;
}

export const about: CommandAbout = {
  group: "fleet",
  summary: "record every Python program of this host, according to a policy",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("watch")
    .description(
      "Find the Python programs of this host within seconds of their start, and record each one. At most\n" +
        "20 have the agent at a time; if more are waiting, they take turns, and the others are recorded from\n" +
        "outside. With --to, recordings are sent to a server while they grow; otherwise verdicts are printed\n" +
        "here. A master and its workers count as one program. Ctrl-C or SIGTERM leaves all programs as they\n" +
        "were.",
    )
    .option("--once", "print how each program would be recorded, and why; record none")
    .option("--check", "like --once, and explain the policy for each program")
    .option("--config <file>", "the policy in YAML, read again when it changes (docs/watch.md)")
    .option("--folder <folder>", "where recordings are kept (default: in ~/.local/share)");
  withDestination(command);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark watch --once",
    "tidemark watch",
    "tidemark watch --config tidemark.yaml --check",
    "tidemark watch --to http://127.0.0.1:7070",
  ).action(watch);
}

/** Also with --quiet. */
const IMPORTANT: ReadonlySet<string> = new Set(["verdict", "captured", "action", "log-failed"]);

async function watch(options: WatchCommandOptions): Promise<void> {
  requireLinux();
  const policyPath = options.config ?? null;
  // Also with --check, which would otherwise call valid what cannot start.
  const server = policyPath === null ? undefined : readPolicy(policyPath).server;
  const { to = server ? serverOf(server.url, server.token_file) : null } = destinationOf(options);
  const actionToken = server?.action_token_file;
  const actionsTo = to === null || actionToken === undefined ? to : serverOf(to.url, actionToken);
  if (options.once === true || options.check === true) {
    const document = await watchDocument(policyPath, (why) =>
      printNote(watchEventText({ kind: "pods", why })),
    );
    if (options.json === true) {
      printJson(document);
    } else {
      printWatchTable(screenOf(process.stdout), document, options.check === true);
    }
    return;
  }
  if (options.json === true) {
    throw badUsage(
      "--json needs --once or --check",
      "print the programs: tidemark watch --once --json",
    );
  }
  await withInterrupt((until) =>
    new Collector({
      policyPath,
      folder: options.folder ?? defaultWatchFolder(),
      to,
      actionsTo,
      until,
      onEvent(event) {
        if (options.quiet !== true || IMPORTANT.has(event.kind)) {
          printNote(watchEventText(event));
        }
      },
    }).run(),
  );
}
