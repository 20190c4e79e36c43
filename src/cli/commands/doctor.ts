import { Command } from "commander";
import { doctorDocument } from "../../inspect/index.js";
import type { Pid } from "../../model/base/units.js";
import type { CommandAbout } from "../options/about.js";
import { type CommonOptions, withCommonOptions, withExamples } from "../options/options.js";
import { parsePid } from "../options/pids.js";
import { toolChecks } from "../options/requirements.js";
import { printDoctor } from "../screens/doctor.js";
import { printJson, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";

interface DoctorOptions extends CommonOptions {
  readonly pid?: Pid;
}

export const about: CommandAbout = {
  group: "machine",
  summary: "check what works on this machine, and how to enable the rest",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("doctor")
    .description(
      "Check what works on this machine: record a short Python program, pause and read another, and\n" +
        "list what does not work with the command that enables it. With --pid, check whether that\n" +
        "process can be attached to. Exit code 0: everything needed works; 1: something is missing.",
    )
    .option("--pid <pid>", "check this process instead", parsePid);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark doctor",
    "tidemark doctor --pid 4242",
    "tidemark doctor --json",
  ).action(doctor);
}

async function doctor(options: DoctorOptions): Promise<void> {
  const document = await withProgress("doctor", "steps", options, (onProgress) =>
    doctorDocument(options.pid ?? null, toolChecks, onProgress),
  );
  if (options.json === true) {
    printJson(document);
  } else {
    printDoctor(screenOf(process.stdout), document, options.quiet === true);
  }
  process.exitCode = document.ready ? 0 : 1;
}
