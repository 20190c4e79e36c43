import { Command, InvalidArgumentError, Option } from "commander";
import { formatBytes, formatDuration } from "../../model/base/numbers.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import type { ServingJson } from "../../model/documents/fleet_document.js";
import { badUsage } from "../../model/errors/errors.js";
import { serve as runServer } from "../../server/index.js";
import { defaultServerFolder, FLEET_PAGES_PATH } from "../files/server_files.js";
import type { CommandAbout } from "../options/about.js";
import { withInterrupt } from "../options/interrupt.js";
import {
  type CommonOptions,
  parseBytes,
  parseDuration,
  withCommonOptions,
  withExamples,
} from "../options/options.js";
import { WatcherBeside } from "../options/watcher_beside.js";
import { printJson, printNote } from "../text/output.js";

interface ServeCommandOptions extends CommonOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly store?: string;
  readonly load?: string[];
  readonly tokenFile?: string;
  readonly keep: Millis;
  readonly maxDisk: Bytes;
  readonly log?: "requests" | "warnings";
  readonly watch?: boolean;
  readonly policy?: string;
}

const DEFAULT_PORT = 7070;
const DEFAULT_KEEP_MS: Millis = 30 * 86_400_000;
const DEFAULT_DISK: Bytes = 10 * 2 ** 30;

export const about: CommandAbout = {
  group: "fleet",
  summary: "keep the recordings of many programs, and show their services",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("serve")
    .description(
      "A server that receives recordings while programs run (tidemark run --to URL), keeps them in a\n" +
        "folder, and shows services, versions and instances: in the browser at its address, in the\n" +
        "terminal (tidemark fleet services), and by HTTP. Without --token-file it accepts only loopback\n" +
        "addresses. Ctrl-C or SIGTERM ends it.",
    )
    .addOption(
      new Option("--listen <address>", "address of the server and its pages; port 0: any free port")
        .default({ host: "127.0.0.1", port: DEFAULT_PORT }, `127.0.0.1:${DEFAULT_PORT}`)
        .argParser(parseAddress),
    )
    .option(
      "--store <store>",
      "where to keep recordings, such as duckdb:FOLDER (default: a folder in ~/.local/share)",
    )
    .option("--load <recordings...>", "load these recordings first")
    .option(
      "--token-file <file>",
      "accept only requests with a token of this file; each line holds a scope (ingest, read or admin) and a token",
    )
    .addOption(
      new Option("--keep <time>", "remove data that is older")
        .default(DEFAULT_KEEP_MS, formatDuration(DEFAULT_KEEP_MS))
        .argParser(parseDuration),
    )
    .addOption(
      new Option("--max-disk <bytes>", "remove the oldest data if all files are larger than this")
        .default(DEFAULT_DISK, formatBytes(DEFAULT_DISK))
        .argParser(parseBytes),
    )
    .addOption(
      new Option(
        "--log <what>",
        "JSON lines on stderr: all requests, or only warnings (the default on a terminal)",
      ).choices(["requests", "warnings"]),
    )
    .option("--watch", "also record every Python program of this host (tidemark watch)")
    .option("--policy <file>", "with --watch: which programs are recorded, and how");
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark serve",
    "tidemark serve --watch",
    "tidemark serve --load yesterday.tidemark today.tidemark",
    "tidemark serve --listen 0.0.0.0:7070 --token-file /run/secrets/tidemark",
    "tidemark serve --store duckdb:/var/lib/tidemark --keep 7d --max-disk 50GiB",
  ).action(serve);
}

async function serve(options: ServeCommandOptions): Promise<void> {
  const say = (line: string) => {
    if (options.quiet !== true) {
      printNote(line);
    }
  };
  if (options.policy !== undefined && options.watch !== true) {
    throw badUsage("--policy has no effect without --watch", "add --watch");
  }
  const usualLog = process.stderr.isTTY ? "warnings" : "requests";
  const watcher = new WatcherBeside();
  const stop = new AbortController();
  await withInterrupt(async (until) => {
    // The programs are left first: the last frames of their recordings still reach the server.
    until.addEventListener("abort", () => void watcher.stop().finally(() => stop.abort()));
    await runServer({
      listen: options.listen,
      store: options.store ?? `duckdb:${defaultServerFolder()}`,
      load: options.load ?? [],
      tokenFile: options.tokenFile ?? null,
      pages: FLEET_PAGES_PATH,
      keepMs: options.keep,
      mostBytes: options.maxDisk,
      logLevel: (options.log ?? usualLog) === "requests" ? "info" : "warn",
      say,
      until: stop.signal,
      listening({ url, folder }) {
        if (options.json === true) {
          printJson({ schema: "tidemark.serving/1", url, folder } satisfies ServingJson);
        }
        say(`serving ${url} from ${folder}; send to it with: tidemark run --to ${url} app.py`);
        if (options.watch === true) {
          watcher.start(url, options.policy, (code) =>
            say(`the collector ended with code ${code ?? "?"}; the server goes on without it`),
          );
        }
      },
    });
  }).finally(() => watcher.stop());
}

/** "127.0.0.1:7070", "[::1]:7070", ":7070" of loopback, "7070" likewise. */
function parseAddress(text: string): ServeCommandOptions["listen"] {
  const [, bracketed, plain, portText] =
    /^(?:(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):)?(\d{1,5})$/.exec(text) ?? [];
  const port = Number(portText ?? "-1");
  if (!(port >= 0 && port <= 65_535)) {
    throw new InvalidArgumentError("an address such as 127.0.0.1:7070 or [::1]:7070");
  }
  return { host: bracketed ?? (plain || "127.0.0.1"), port };
}
