import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import type { Millis } from "../../model/base/units.js";
import type { ServingJson } from "../../model/documents/fleet_document.js";
import { serve, USUAL_LIMITS } from "../../server/index.js";
import { canOpenBrowser, openBrowser } from "../files/browser.js";
import { openRecordingAt } from "../files/recordings.js";
import { FLEET_PAGES_PATH } from "../files/server_files.js";
import type { CommandAbout } from "../options/about.js";
import { withInterrupt } from "../options/interrupt.js";
import { type CommonOptions, withCommonOptions, withExamples } from "../options/options.js";
import { printJson, printNote } from "../text/output.js";

interface OpenOptions extends CommonOptions {
  readonly browser: boolean;
}

export const about: CommandAbout = {
  group: "recordings",
  summary: "show a recording in the browser, also while it is recorded",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("open")
    .description(
      "Show a recording in the pages of tidemark serve, at a free port of 127.0.0.1, and open the browser.\n" +
        "While a program is recorded, the page follows it. Ctrl-C ends it; what the server kept is removed.",
    )
    .argument("<recording>", "a .tidemark file")
    .option("--no-browser", "only print the address");
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark open app.tidemark",
    "tidemark open app.tidemark --no-browser",
  ).action(open);
}

/** The recording is kept whole, however old it is. */
const FOREVER_MS: Millis = 100 * 365 * 86_400_000;

async function open(path: string, options: OpenOptions): Promise<void> {
  const { damage, missing } = openRecordingAt(path);
  if (damage !== null && missing !== null && options.quiet !== true) {
    printNote(missing);
  }
  const folder = mkdtempSync(join(tmpdir(), "tidemark-open-"));
  try {
    await withInterrupt((until) =>
      serve({
        listen: { host: "127.0.0.1", port: 0 },
        store: `duckdb:${join(folder, "server")}`,
        usual: folder,
        demo: false,
        load: [path],
        follow: true,
        tokenFile: null,
        pages: FLEET_PAGES_PATH,
        limits: {
          ...USUAL_LIMITS,
          keepMs: FOREVER_MS,
          keepRecordingsMs: FOREVER_MS,
          tiers: { raw: FOREVER_MS, "10m": FOREVER_MS, "1h": FOREVER_MS },
          asksForAgents: false,
        },
        onReload: () => {},
        say: () => {},
        until,
        listening({ url, folder: kept, streams }) {
          show(path, { url: `${url}/instance/${streams[0]}`, folder: kept }, options);
        },
      }),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function show(
  path: string,
  { url, folder }: Omit<ServingJson, "schema">,
  { browser, json, quiet }: OpenOptions,
): void {
  if (json === true) {
    printJson({ schema: "tidemark.serving/1", url, folder } satisfies ServingJson);
  }
  if (quiet !== true) {
    printNote(`${path} is shown at ${url} until Ctrl-C`);
  }
  if (browser && canOpenBrowser()) {
    openBrowser(url);
  }
}
