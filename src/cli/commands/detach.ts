import { Command, Option } from "commander";
import { detachAgent } from "../../inspect/index.js";
import { formatMilliseconds } from "../../model/base/numbers.js";
import type { Millis, Pid } from "../../model/base/units.js";
import type { DetachJson } from "../../model/documents/detach_document.js";
import type { CommandAbout } from "../options/about.js";
import { withInterrupt } from "../options/interrupt.js";
import {
  type CommonOptions,
  parseDuration,
  withCommonOptions,
  withExamples,
} from "../options/options.js";
import { parsePid } from "../options/pids.js";
import { requireLinux } from "../options/requirements.js";
import { printJson, printNote, screenOf } from "../text/output.js";

interface DetachOptions extends CommonOptions {
  readonly wait: Millis;
}

export const about: CommandAbout = {
  group: "record",
  summary: "clean up after a recorder that crashed",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("detach")
    .description(
      "Clean up a process whose recorder crashed: stop the agent and remove every hook. The library\n" +
        "stays mapped but inactive; the next attach reuses it.",
    )
    .argument("<pid>", "the process", parsePid)
    .addOption(
      new Option("--wait <time>", "how long to wait for the process to run Python code")
        .default(60_000, "60s")
        .argParser(parseDuration),
    );
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark detach 4242",
    "tidemark detach 4242 --wait 5min --json",
  ).action(detach);
}

async function detach(pid: Pid, options: DetachOptions): Promise<void> {
  requireLinux();
  let said = "";
  const document = await withInterrupt((until) =>
    detachAgent(pid, {
      waitMs: options.wait,
      until,
      onWaiting(doing) {
        if (options.quiet !== true && doing !== said) {
          printNote(`waiting for process ${pid} to run Python code: ${doing}`);
        }
        said = doing;
      },
    }),
  );
  if (options.json === true) {
    printJson(document);
  } else if (options.quiet !== true) {
    screenOf(process.stdout).line(detachedLine(document));
  }
}

function detachedLine({ pid, recorded, inert, pauseMs }: DetachJson): string {
  const paused = `it was paused for ${formatMilliseconds(pauseMs)}.`;
  if (!recorded) {
    return `process ${pid}: nothing was left to remove; its agent had already stopped. The library stays mapped but inactive; ${paused}`;
  }
  return inert
    ? `process ${pid}: its agent has stopped, and every hook is removed; ${paused}`
    : `process ${pid}: its agent has stopped; ${paused} The last hooks will be removed when it next runs Python code.`;
}
