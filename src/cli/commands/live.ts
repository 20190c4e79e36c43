import { Command } from "commander";
import { recordingOfProcess, summarize } from "../../inspect/index.js";
import { openRecordingAt } from "../files/recordings.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  type ListOptions,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { requireLinux } from "../options/requirements.js";
import { selectSites } from "../options/select_sites.js";
import { printJson } from "../text/output.js";
import { showFullScreen } from "../views/full_screen.js";
import { liveView } from "../views/live_view.js";

type LiveOptions = CommonOptions & ListOptions;

export const about: CommandAbout = {
  group: "processes",
  summary: "show a recording in progress in a live view",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("live")
    .description(
      "A live view of a process that is being recorded (`tidemark run`, `tidemark attach`), or of a\n" +
        "recording: RSS, the largest sites, and how fast each grows and allocates.",
    )
    .argument("<pid|recording>", "a recorded process, or a .tidemark file");
  withListOptions(command, "sites", 0);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark live 4242",
    "tidemark live app.tidemark --filter torch",
    "tidemark live 4242 --json",
  ).action(live);
}

async function live(target: string, options: LiveOptions): Promise<void> {
  requireLinux();
  const path = /^\d+$/.test(target) ? recordingOfProcess(Number(target)) : target;
  if (options.json === true) {
    const document = summarize(openRecordingAt(path), "end");
    printJson({ ...document, sites: selectSites(document.sites, options) });
    return;
  }
  openRecordingAt(path); // a file that is missing or is no recording is the first thing to report
  await showFullScreen(liveView(path, path, options));
}
