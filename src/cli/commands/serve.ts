import { dirname } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { formatBytes, formatDurationBriefly } from "../../model/base/numbers.js";
import { addressIn } from "../../model/base/quantities.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import type { BackupJson, ServingJson } from "../../model/documents/fleet_document.js";
import { badUsage } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import {
  backUpStore,
  readConfig,
  restoreStore,
  serve as runServer,
  type ServeOptions,
  USUAL_LIMITS,
} from "../../server/index.js";
import { defaultDemoFolder, defaultServerFolder, FLEET_PAGES_PATH } from "../files/server_files.js";
import type { CommandAbout } from "../options/about.js";
import { withInterrupt } from "../options/interrupt.js";
import {
  type CommonOptions,
  parseBytes,
  parseDuration,
  withCommonOptions,
  withExamples,
} from "../options/options.js";
import { checkPolicy, WatcherBeside } from "../options/watcher_beside.js";
import { printJson, printNote } from "../text/output.js";

/** An option that is not given has the configuration's value, or else its default. */
interface ServeCommandOptions extends CommonOptions {
  readonly config?: string;
  readonly listen?: ServeOptions["listen"];
  readonly store?: string;
  readonly files?: string;
  readonly demo?: boolean;
  readonly load?: string[];
  readonly tokenFile?: string;
  readonly keep?: Millis;
  readonly keepRecordings?: Millis;
  readonly labelValues?: number;
  readonly tiers?: Partial<ServeOptions["limits"]["tiers"]>;
  readonly maxDisk?: Bytes;
  readonly log?: "requests" | "warnings";
  readonly watch?: boolean;
  readonly policy?: string;
  readonly alerts?: NonNullable<ServeOptions["limits"]["alerts"]>;
  readonly actions?: ServeOptions["limits"]["actions"];
  readonly artifacts?: ServeOptions["limits"]["artifacts"];
  readonly sizes?: ServeOptions["limits"]["sizes"];
  readonly asksForAgents?: boolean;
  readonly handedPolicy?: string;
  readonly backup?: string;
  readonly restore?: string;
}

const DEFAULT_LISTEN = { host: "127.0.0.1", port: 7070 };

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
    .option(
      "--config <file>",
      "read these options from a YAML file, and again on SIGHUP; options given here take precedence",
    )
    .option(
      "--listen <address>",
      "address of the server and its pages; port 0: any free port (default: 127.0.0.1:7070)",
      parseAddress,
    )
    .option(
      "--store <store>",
      "where to keep recordings: duckdb:FOLDER, or clickhouse://USER:PASSWORD@HOST:8123/DATABASE, with ?cluster=NAME for shards (default: a folder in ~/.local/share)",
    )
    .option(
      "--files <folder>",
      "with ClickHouse: where to keep what is not in its database (default: a folder in ~/.local/share)",
    )
    .option(
      "--demo",
      "show a made-up fleet of 20 services and 30 days, with two leaks and one regression to find",
    )
    .option("--load <recordings...>", "load these recordings first")
    .option(
      "--token-file <file>",
      "accept only requests with a token of this file; each line holds a scope (ingest, read, act or admin) and a token",
    )
    .option(
      "--keep <time>",
      `remove data that is older (default: ${formatDurationBriefly(USUAL_LIMITS.keepMs)}; recordings: ${formatDurationBriefly(USUAL_LIMITS.keepRecordingsMs)})`,
      parseDuration,
    )
    .option(
      "--max-disk <bytes>",
      `remove the oldest data if all files are larger than this (default: ${formatBytes(USUAL_LIMITS.mostBytes)})`,
      parseBytes,
    )
    .addOption(
      new Option(
        "--log <what>",
        "JSON lines on stderr: all requests, or only warnings (the default on a terminal)",
      ).choices(["requests", "warnings"]),
    )
    .option("--watch", "also record every Python program of this host (tidemark watch)")
    .option("--policy <file>", "with --watch: which programs are recorded, and how")
    .option(
      "--backup <folder>",
      "copy all data of --store to this new folder, also while a server uses it; then exit",
    )
    .option(
      "--restore <folder>",
      "copy a backup to the folder of --store, which must be new; then exit",
    );
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark serve",
    "tidemark serve --demo",
    "tidemark serve --watch",
    "tidemark serve --load yesterday.tidemark today.tidemark",
    "tidemark serve --listen 0.0.0.0:7070 --token-file /run/secrets/tidemark",
    "tidemark serve --store duckdb:/var/lib/tidemark --keep 7d --max-disk 50GiB",
    "tidemark serve --config /etc/tidemark/serve.yaml",
    "tidemark serve --store duckdb:/var/lib/tidemark --backup /backup/tidemark-monday",
  ).action(serve);
}

async function serve(given: ServeCommandOptions): Promise<void> {
  const say = (line: string) => {
    if (given.quiet !== true) {
      printNote(line);
    }
  };
  const options = await configured(given);
  const usualFolder = options.demo === true ? defaultDemoFolder() : defaultServerFolder();
  const store = options.store ?? `duckdb:${usualFolder}`;
  if (options.backup !== undefined || options.restore !== undefined) {
    await copyStore(store, options, say);
    return;
  }
  const watcher = new WatcherBeside();
  const stop = new AbortController();
  const reload = reloading(given, options, say);
  await withInterrupt(
    async (until) => {
      // Recording ends first, so that the last frames of the recordings still reach the server.
      until.addEventListener("abort", () => void watcher.stop().finally(() => stop.abort()));
      await runServer({
        listen: options.listen ?? DEFAULT_LISTEN,
        store,
        ...{ files: options.files, usual: dirname(usualFolder) },
        ...(options.labelValues === undefined ? {} : { labelValues: options.labelValues }),
        demo: options.demo === true,
        load: options.load ?? [],
        tokenFile: options.tokenFile ?? null,
        pages: FLEET_PAGES_PATH,
        limits: limitsOf(options),
        onReload: (apply) => reload?.when(apply),
        say,
        until: stop.signal,
        listening({ url, folder }) {
          if (options.json === true) {
            printJson({ schema: "tidemark.serving/1", url, folder } satisfies ServingJson);
          }
          say(`serving ${url} from ${folder}; send to it with: tidemark run --to ${url} app.py`);
          if (options.watch === true) {
            watcher.start(url, options.policy, (code) =>
              say(`the collector ended with code ${code ?? "?"}; the server continues without it`),
            );
          }
        },
      });
    },
    reload === null ? undefined : () => void reload.now(),
  ).finally(() => watcher.stop());
}

/** The options with those of the configuration. Throws TidemarkError. */
async function configured(given: ServeCommandOptions): Promise<ServeCommandOptions> {
  const config = given.config === undefined ? {} : await readConfig(given.config);
  const options: ServeCommandOptions = { ...config, ...given };
  if (options.policy !== undefined && options.watch !== true) {
    throw badUsage("--policy has no effect without --watch", "add --watch");
  }
  if (options.policy !== undefined) {
    await checkPolicy(options.policy);
  }
  if (options.demo === true && (options.watch === true || options.load !== undefined)) {
    throw badUsage(
      "--demo cannot be combined with --watch or --load: the demo's data is removed at its next start",
      "leave out one of them",
    );
  }
  if (options.backup !== undefined && options.restore !== undefined) {
    throw badUsage("--backup and --restore cannot be combined", "name one of them");
  }
  return options;
}

function limitsOf(options: ServeCommandOptions): ServeOptions["limits"] {
  const { keep, keepRecordings, tiers, maxDisk, log, ...others } = options;
  const usual = USUAL_LIMITS;
  const usualLog = process.stderr.isTTY ? "warnings" : "requests";
  return {
    keepMs: keep ?? usual.keepMs,
    keepRecordingsMs: keepRecordings ?? usual.keepRecordingsMs,
    tiers: { ...usual.tiers, ...tiers },
    mostBytes: maxDisk ?? usual.mostBytes,
    logLevel: (log ?? usualLog) === "requests" ? "info" : "warn",
    alerts: others.alerts ?? usual.alerts,
    actions: others.actions ?? usual.actions,
    artifacts: others.artifacts ?? usual.artifacts,
    sizes: others.sizes ?? usual.sizes,
    asksForAgents: others.asksForAgents ?? usual.asksForAgents,
    handedPolicy: others.handedPolicy ?? usual.handedPolicy,
  };
}

type Apply = Parameters<ServeOptions["onReload"]>[0];

/** Reads the configuration again when asked. If it is invalid, the old one stays. null: there is none. */
function reloading(
  given: ServeCommandOptions,
  first: ServeCommandOptions,
  say: (line: string) => void,
) {
  const path = given.config;
  if (path === undefined) {
    return null;
  }
  let apply: Apply | null = null;
  return {
    when(ready: Apply): void {
      apply = ready;
    },
    async now(): Promise<void> {
      try {
        const options = await configured(given);
        apply?.(limitsOf(options), options.tokenFile ?? null);
        const waiting = AT_START.filter(
          (name) => JSON.stringify(options[name]) !== JSON.stringify(first[name]),
        );
        const rest =
          waiting.length === 0
            ? ""
            : `; ${waiting.map(inFile).join(", ")} will apply at the next start`;
        say(`read ${path} again${rest}`);
      } catch (error) {
        say(`${reasonOf(error).message}; the old settings remain in force`);
      }
    },
  };
}

/** The name of a setting in the configuration file. */
const inFile = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Settings that a running server cannot change. */
const AT_START = ["listen", "store", "files", "labelValues", "load", "watch", "policy"] as const;

async function copyStore(
  store: string,
  { backup, restore = "", json }: ServeCommandOptions,
  say: (line: string) => void,
): Promise<void> {
  const { folder, madeMs, files, bytes } =
    backup === undefined ? await restoreStore(store, restore) : await backUpStore(store, backup);
  if (json === true) {
    printJson({
      schema: "tidemark.backup/1",
      folder,
      madeMs,
      files,
      bytes,
    } satisfies BackupJson);
  }
  const amount = `${files} files, ${formatBytes(bytes)}`;
  say(
    backup === undefined
      ? `restored ${amount} to ${folder}; start the server with: tidemark serve --store duckdb:${folder}`
      : `wrote a backup to ${folder}: ${amount}; restore it with: tidemark serve --restore ${folder} --store duckdb:NEW-FOLDER`,
  );
}

function parseAddress(text: string): ServeOptions["listen"] {
  const address = addressIn(text);
  if (address === null) {
    throw new InvalidArgumentError("an address such as 127.0.0.1:7070 or [::1]:7070");
  }
  return address;
}
