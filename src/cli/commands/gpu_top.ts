import { Command, Option } from "commander";
import { gpuTopDocument } from "../../inspect/index.js";
import type { Millis } from "../../model/base/units.js";
import type { GpuTopJson } from "../../model/documents/gpu/gpu_document.js";
import {
  type CommonOptions,
  type ListOptions,
  parseInterval,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { requireLinux } from "../options/requirements.js";
import { chosenProcesses, printGpuTop } from "../screens/gpu/top.js";
import { printJson, screenOf } from "../text/output.js";
import { showFullScreen } from "../views/full_screen.js";
import { gpuTopView } from "../views/gpu_top_view.js";

interface TopOptions extends CommonOptions, ListOptions {
  readonly interval: Millis;
}

const INTERVAL_MS = 1000;

export function gpuTopCommand(): Command {
  const command = new Command("top")
    .summary("show the devices of this host and the processes on them")
    .description(
      "A live view of each NVIDIA device: memory, utilisation, its MIG instances, and the processes on\n" +
        "it with their host memory. If a process is being recorded (attach --gpu), the memory that its\n" +
        "allocator reserved is shown next to the driver's figure. Without a terminal, prints one\n" +
        "snapshot.",
    )
    .addOption(
      new Option("--interval <time>", "refresh interval")
        .default(INTERVAL_MS, "1s")
        .argParser(parseInterval),
    );
  withListOptions(command, "processes", 0);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark gpu top",
    "tidemark gpu top --min 1GiB --interval 5s",
    "tidemark gpu top --json",
  ).action(top);
}

async function top(_: unknown, command: Command): Promise<void> {
  const options = command.optsWithGlobals<TopOptions>();
  requireLinux();
  if (options.json === true) {
    printJson(chosen(await gpuTopDocument(), options));
  } else if (process.stdin.isTTY === true && process.stdout.isTTY === true) {
    await showFullScreen(gpuTopView(options, options.interval));
  } else {
    printGpuTop(screenOf(process.stdout), await gpuTopDocument(), options);
  }
}

function chosen(document: GpuTopJson, options: ListOptions): GpuTopJson {
  const devices = document.devices.map((device) => ({
    ...device,
    processes: chosenProcesses(device, options),
  }));
  return { ...document, devices };
}
