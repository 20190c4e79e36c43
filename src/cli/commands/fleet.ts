import { Argument, Command, Option } from "commander";
import type { Millis } from "../../model/base/units.js";
import type { ServiceJson, ServicesJson } from "../../model/documents/fleet_document.js";
import { badUsage } from "../../model/errors/errors.js";
import { FleetClient } from "../../server/index.js";
import type { CommandAbout } from "../options/about.js";
import { serverOf } from "../options/destination.js";
import {
  type CommonOptions,
  type ListOptions,
  parseDuration,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { instanceText, printService, printServices, serviceText } from "../screens/fleet.js";
import { printJson, screenOf } from "../text/output.js";

interface FleetOptions extends CommonOptions, ListOptions {
  readonly server: string;
  readonly tokenFile?: string;
  readonly since: Millis;
}

const DEFAULT_SERVER = "http://127.0.0.1:7070";
const DEFAULT_ROWS = 50;

export const about: CommandAbout = {
  group: "fleet",
  summary: "query a server about its services and their instances",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("fleet")
    .description(
      "Query a server (tidemark serve): all services with their memory, growth and verdict, or one\n" +
        "service with its instances. The server shows the same in the browser at its address.",
    )
    .addArgument(new Argument("<question>", "what to ask").choices(["services", "service"]))
    .argument("[name]", "name of the service, for `service`")
    .addOption(
      new Option("--server <url>", "the server's address")
        .default(DEFAULT_SERVER)
        .env("TIDEMARK_SERVER"),
    )
    .option("--token-file <file>", "the server's token (or TIDEMARK_TOKEN)")
    .addOption(
      new Option("--since <time>", "how far to look back")
        .default(3_600_000, "1h")
        .argParser(parseDuration),
    );
  withListOptions(command, "rows", DEFAULT_ROWS);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark fleet services",
    "tidemark fleet service checkout --since 24h",
    "tidemark fleet services --server https://tidemark.internal --token-file read.token --json",
  ).action(fleet);
}

async function fleet(
  question: "services" | "service",
  name: string | undefined,
  options: FleetOptions,
): Promise<void> {
  if ((question === "service") !== (name !== undefined)) {
    throw badUsage(
      name === undefined
        ? "fleet service needs the name of a service"
        : `fleet services takes no name: ${name}`,
      "as in: tidemark fleet service checkout",
    );
  }
  const client = new FleetClient(serverOf(options.server, options.tokenFile));
  const endMs = Date.now();
  const window = { startMs: endMs - options.since, endMs };
  if (name === undefined) {
    showServices(await client.services(window), options);
  } else {
    showService(await client.service(name, window), options);
  }
}

function showServices(document: ServicesJson, options: FleetOptions): void {
  const bySize = document.services.slice().sort((a, b) => b.rssBytes - a.rssBytes);
  const selected = selectRows(bySize, options, DEFAULT_ROWS, (row) => row.rssBytes, serviceText);
  if (options.json === true) {
    printJson({ ...document, services: selected.rows } satisfies ServicesJson);
  } else {
    printServices(screenOf(process.stdout), selected, options.quiet === true);
  }
}

function showService(document: ServiceJson, options: FleetOptions): void {
  const { instances } = document;
  const selected = selectRows(
    instances,
    options,
    DEFAULT_ROWS,
    (row) => row.rssBytes,
    instanceText,
  );
  if (options.json === true) {
    printJson({ ...document, instances: selected.rows } satisfies ServiceJson);
  } else {
    printService(screenOf(process.stdout), document, selected);
  }
}
