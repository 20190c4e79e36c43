import { Command } from "commander";
import type { Pid } from "../../model/base/units.js";
import { badUsage } from "../../model/errors/errors.js";
import { statOf } from "../files/files.js";
import type { CommandAbout } from "../options/about.js";
import {
  withCommonOptions,
  withExamples,
  withForceOption,
  withListOptions,
} from "../options/options.js";
import { parsePid } from "../options/pids.js";
import { DEFAULT_GPU_SITES } from "../screens/gpu/snapshot.js";
import { gpuOomCommand } from "./gpu_oom.js";
import { showGpuProcess } from "./gpu_process.js";
import { type GpuOptions, showSnapshots } from "./gpu_snapshot.js";
import { gpuTopCommand } from "./gpu_top.js";

export const about: CommandAbout = {
  group: "devices",
  summary: "show what uses CUDA memory: a snapshot, a process or a log",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("gpu")
    .description(
      "What uses the memory of a CUDA device, from a snapshot of PyTorch's allocator (a file that\n" +
        "torch.cuda.memory._dump_snapshot wrote; also .gz or .zst). Two files are compared; three or\n" +
        "more are shown as the ranks of one job.",
    )
    .argument("<snapshot or pid...>", "snapshot files, or one running process")
    .option("--ranks", "treat two files as ranks of one job, not as before and after")
    .option(
      "-o, --output <file>",
      "write a page about one snapshot, two compared\n" +
        "snapshots, or a process's allocator now, as\n" +
        "self-contained HTML; *.pb.gz of a process writes\nJAX's own profile",
    );
  withForceOption(command);
  withListOptions(command, "sites", DEFAULT_GPU_SITES);
  withCommonOptions(command, "stdout");
  withExamples(
    command,
    "tidemark gpu snapshot.pickle",
    "tidemark gpu before.pickle after.pickle",
    "tidemark gpu rank*.pickle --json",
    "tidemark gpu snapshot.pickle.zst -o snapshot.html",
    "tidemark gpu before.pickle after.pickle -o difference.html",
    "tidemark gpu 4242 -o now.html",
    "tidemark gpu oom train.log",
    "tidemark gpu top",
  ).action(gpu);
  for (const subcommand of [gpuOomCommand(), gpuTopCommand()]) {
    subcommand
      .helpOption("-h, --help", "show this help")
      .exitOverride()
      .configureOutput({ outputError: () => undefined });
    command.addCommand(subcommand);
  }
  return command.helpCommand(false);
}

function gpuPid(text: string): Pid {
  try {
    return parsePid(text);
  } catch {
    throw badUsage(
      `gpu takes a snapshot, or a process id such as 4242 (tidemark ps lists them), not '${text}'`,
    );
  }
}

async function gpu(paths: string[], options: GpuOptions): Promise<void> {
  const pid = paths.find((path) => /^\d+$/.test(path) && statOf(path) === undefined);
  if (pid !== undefined) {
    if (paths.length > 1) {
      throw badUsage("only one process can be shown at a time", `tidemark gpu ${pid}`);
    }
    return showGpuProcess(gpuPid(pid), options);
  }
  await showSnapshots(paths, options);
}
