import { Argument, Command, Option } from "commander";
import type { Millis } from "../../model/base/units.js";
import type { ServiceJson, ServicesJson } from "../../model/documents/fleet_document.js";
import { badUsage, nothingThere, oneLine, type TidemarkError } from "../../model/errors/errors.js";
import { partialSentence } from "../../model/wire/partial.js";
import { LONGEST_REQUEST_MS, SHORTEST_REQUEST_MS } from "../../model/wire/requests_path.js";
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
import { printActions } from "../screens/fleet_actions.js";
import { printAlerts } from "../screens/fleet_alerts.js";
import { printDiagnoses, printDiagnosis } from "../screens/fleet_diagnosis.js";
import { printRequest, printRequests } from "../screens/fleet_requests.js";
import { printSize, printSizes } from "../screens/fleet_sizes.js";
import {
  printEndpoints,
  printFleetDiff,
  printGrowing,
  printVerdicts,
} from "../screens/fleet_stacks.js";
import { printJson, printNote, type Screen, screenOf } from "../text/output.js";

interface FleetOptions extends CommonOptions, ListOptions {
  readonly server: string;
  readonly tokenFile?: string;
  readonly since: Millis;
  readonly ago?: Millis;
  readonly for: Millis;
  readonly by: (typeof VERDICTS_OF)[number];
  readonly label?: string;
  readonly where?: string;
}

const QUESTIONS = [
  "services",
  "service",
  "growing",
  "endpoints",
  "diff",
  "verdicts",
  "sizes",
  "alerts",
  "actions",
  "profile",
  "requests",
] as const;
type Question = (typeof QUESTIONS)[number];
/** How many names each question takes. */
const NAMES: Readonly<Record<Question, readonly [least: number, most: number]>> = {
  services: [0, 0],
  service: [1, 1],
  growing: [1, 1],
  endpoints: [1, 1],
  diff: [1, 2],
  verdicts: [0, 1],
  sizes: [0, 1],
  alerts: [0, 0],
  actions: [0, 1],
  profile: [1, 1],
  requests: [0, 1],
};

/** Of questions that need names, with them. */
const EXAMPLES: Readonly<Partial<Record<Question, string>>> = {
  service: "service checkout",
  growing: "growing checkout",
  endpoints: "endpoints checkout",
  diff: "diff checkout@41 checkout@42",
  profile: "profile checkout --for 5min",
};

const VERDICTS_OF = ["service", "instance"] as const;

const DEFAULT_SERVER = "http://127.0.0.1:7070";
const DEFAULT_ROWS = 50;
const MOST_ROWS = 8192;
const LONGEST_DAYS = 730;

export const about: CommandAbout = {
  group: "fleet",
  summary: "query a server about its services: instances, growth, verdicts, differences",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("fleet")
    .description(
      "Query a server (tidemark serve): all services with their memory, growth and verdict; one service\n" +
        "with its instances; what grows in it; its memory by endpoint; which services leak, since which version and\n" +
        "on how many instances; the alerts; the actions of collectors; or what differs between two versions,\n" +
        "selections or times. `profile` asks all collectors to load the agent into the programs of a service for a\n" +
        "while, as far as the policy of each host allows it. The server shows services in the browser.",
    )
    .addArgument(new Argument("<question>", "what to ask").choices(QUESTIONS))
    .argument(
      "[names...]",
      "a service; for `diff` two of SERVICE, SERVICE@VERSION or '{label=\"value\"}'",
    )
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
  command.option(
    "--ago <time>",
    "for `diff`: compare with the same selection this long before",
    parseDuration,
  );
  command.addOption(
    new Option("--for <time>", "for `profile`: how long the programs have the agent")
      .default(300_000, "5min")
      .argParser(parseDuration),
  );
  command.addOption(
    new Option(
      "--by <what>",
      "for `verdicts`: of services from all their processes, or of each instance",
    )
      .choices(VERDICTS_OF)
      .default("service"),
  );
  command.option("--label <key>", "for `endpoints`: group by this label of tidemark.label");
  command.option(
    "--where <key=value>",
    "for `endpoints`: only what was allocated with this label; KEY= for what had none",
  );
  withListOptions(command, "rows", DEFAULT_ROWS);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark fleet services",
    "tidemark fleet service checkout --since 24h",
    "tidemark fleet growing checkout --since 6h",
    "tidemark fleet endpoints checkout --since 6h",
    "tidemark fleet endpoints checkout --label tenant --where endpoint=/search",
    "tidemark fleet verdicts",
    "tidemark fleet verdicts checkout",
    "tidemark fleet sizes",
    "tidemark fleet alerts",
    "tidemark fleet actions checkout",
    "tidemark fleet profile checkout --for 5min",
    "tidemark fleet requests",
    "tidemark fleet diff checkout@41 checkout@42",
    "tidemark fleet diff checkout --ago 24h",
    "tidemark fleet services --server https://tidemark.internal --token-file read.token --json",
  ).action(fleet);
}

async function fleet(question: Question, names: string[], options: FleetOptions): Promise<void> {
  const [least, most] = NAMES[question];
  if (names.length < least || names.length > most) {
    throw badUsage(
      names.length < least
        ? `fleet ${question} needs the name of a service`
        : `fleet ${question} takes ${most === 0 ? "no name" : `at most ${most}`}: ${names[most]}`,
      `as in: tidemark fleet ${EXAMPLES[question] ?? question}`,
    );
  }
  const [name = "", second] = names;
  if (question === "diff" && (second === undefined) === (options.ago === undefined)) {
    throw badUsage(
      "fleet diff needs two selections, or one and --ago",
      "as in: tidemark fleet diff checkout --ago 24h",
    );
  }
  if (question === "verdicts" && names.length > 0 && options.by === "instance") {
    throw badUsage(
      "fleet verdicts --by instance takes no name",
      `as in: tidemark fleet service ${name}`,
    );
  }
  if (question !== "endpoints" && (options.label ?? options.where) !== undefined) {
    throw badUsage(
      `--${options.label === undefined ? "where" : "label"} belongs to fleet endpoints`,
      "as in: tidemark fleet endpoints checkout --label tenant",
    );
  }
  if (
    question === "profile" &&
    (options.for < SHORTEST_REQUEST_MS || options.for > LONGEST_REQUEST_MS)
  ) {
    throw badUsage(
      "fleet profile takes a time from 10s to 1h with --for",
      `as in: tidemark fleet profile ${name} --for 5min`,
    );
  }
  for (const option of ["since", "ago"] as const) {
    const ms = options[option];
    if (ms !== undefined && (ms < 1 || ms > LONGEST_DAYS * 86_400_000)) {
      throw badUsage(
        `the time of --${option} must be above zero and at most ${LONGEST_DAYS} days`,
        `as in: tidemark fleet ${EXAMPLES[question] ?? question} --${option} 24h`,
      );
    }
  }
  const client = new FleetClient(serverOf(options.server, options.tokenFile), (partial) =>
    printNote(`partial: ${partialSentence(partial)}`),
  );
  const endMs = Date.now();
  const window = { startMs: endMs - options.since, endMs };
  switch (question) {
    case "services":
      return showServices(await client.services(window), options);
    case "service":
      return showService(await client.service(name, window), options);
    case "growing":
      return show(await client.growing(name, window, rowsIn(options)), options, printGrowing);
    case "endpoints":
      return show(
        await client.endpoints(name, window, {
          ...{ top: rowsIn(options), by: options.label, where: options.where },
        }),
        options,
        printEndpoints,
      );
    case "verdicts":
      return options.by === "instance"
        ? show(await client.verdicts(window), options, printVerdicts)
        : showDiagnoses(client, names[0], window, options);
    case "sizes":
      return showSizes(client, names[0], window, options);
    case "alerts":
      return show(await client.alerts(), options, printAlerts);
    case "actions":
      return show(await client.actions(names[0]), options, printActions);
    case "requests":
      return show(await client.requests(names[0]), options, printRequests);
    case "profile": {
      const request = await client.requestProfile(name, options.for, process.env.USER ?? "");
      if (options.json === true) {
        return printJson(await client.requests(name));
      }
      return printRequest(screenOf(process.stdout), request);
    }
    case "diff": {
      const ago = options.ago ?? 0;
      const left = { startMs: window.startMs - ago, endMs: window.endMs - ago };
      const sides = [
        { selector: selectorOf(name), window: left },
        { selector: selectorOf(second ?? name), window },
      ] as const;
      const document = await client.diff(sides, rowsIn(options));
      const unknown = [document.left, document.right].find(({ isUnknown }) => isUnknown);
      if (unknown !== undefined) {
        throw nothingThere(
          `no process is stored that ${oneLine(unknown.selector)} selects`,
          unknown.unknown ?? "list services and versions: tidemark fleet services --since 30d",
        );
      }
      return show(document, options, printFleetDiff);
    }
  }
}

function rowsIn({ top }: FleetOptions): number {
  return top === undefined ? DEFAULT_ROWS : top === 0 ? MOST_ROWS : Math.min(top, MOST_ROWS);
}

/** "shop", "shop@42" or a selector, as a selector. */
function selectorOf(name: string): string {
  if (name.startsWith("{")) {
    return name;
  }
  const [, service = name, version] = /^(.+)@([^@]+)$/.exec(name) ?? [];
  const versionPart = version === undefined ? "" : `, version=${JSON.stringify(version)}`;
  return `{service_name=${JSON.stringify(service)}${versionPart}}`;
}

function show<Document>(
  document: Document,
  options: FleetOptions,
  print: (screen: Screen, document: Document, options: FleetOptions) => void,
): void {
  if (options.json === true) {
    printJson(document as Document & { schema: string });
  } else {
    print(screenOf(process.stdout), document, options);
  }
}

async function showDiagnoses(
  client: FleetClient,
  service: string | undefined,
  window: { readonly startMs: number; readonly endMs: number },
  options: FleetOptions,
): Promise<void> {
  const document = await client.diagnoses(window, service);
  if (service === undefined) {
    return show(document, options, printDiagnoses);
  }
  const [diagnosis] = document.diagnoses;
  if (diagnosis === undefined) {
    throw notReported(service);
  }
  show(diagnosis, options, printDiagnosis);
}

async function showSizes(
  client: FleetClient,
  service: string | undefined,
  window: { readonly startMs: number; readonly endMs: number },
  options: FleetOptions,
): Promise<void> {
  const document = await client.sizes(window, service);
  if (service !== undefined && document.sizes.length === 0) {
    throw notReported(service);
  }
  show(document, options, service === undefined ? printSizes : printSize);
}

function notReported(service: string): TidemarkError {
  return nothingThere(
    `${oneLine(service)} did not report in this time`,
    "look back further with --since",
  );
}

function showServices(document: ServicesJson, options: FleetOptions): void {
  const bySize = document.services.slice().sort((a, b) => b.rssBytes - a.rssBytes);
  const selected = selectRows(bySize, options, DEFAULT_ROWS, (row) => row.rssBytes, serviceText);
  if (options.json === true) {
    printJson({ ...document, services: selected.rows } satisfies ServicesJson);
  } else {
    const { endMs: nowMs } = document.window;
    const isQuiet = options.quiet === true;
    printServices(screenOf(process.stdout), selected, { nowMs, isQuiet });
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
