import { Command } from "commander";
import { readDevices } from "../../gpu/device_totals.js";
import { readCommand, readStatus } from "../../linux/process.js";
import type { GpuTopJson } from "../../model/gpu_document.js";
import { requireLinux } from "../installation.js";
import {
  type CommonOptions,
  type ListOptions,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options.js";
import { printJson, screenOf } from "../output.js";
import { printGpuTop } from "../screens/gpu_top.js";

export function gpuTopCommand(): Command {
  const command = new Command("top")
    .summary("the devices of this host and who is on them")
    .description(
      "Each NVIDIA device: memory, utilisation, and the processes on it with their host memory, as\n" +
        "nvidia-smi tells now.",
    );
  withListOptions(command, "processes", 0);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark gpu top",
    "tidemark gpu top --min 1GiB",
    "tidemark gpu top --json",
  ).action(top);
}

async function top(_: unknown, command: Command): Promise<void> {
  const options = command.optsWithGlobals<CommonOptions & ListOptions>();
  requireLinux();
  const document = await look(options);
  if (options.json === true) printJson(document);
  else printGpuTop(screenOf(process.stdout), document, options);
}

async function look(options: ListOptions): Promise<GpuTopJson> {
  const { devices, processes } = await readDevices();
  const limits = [
    "what a process's own allocator holds is seen from inside it only: torch.cuda.memory_reserved()",
  ];
  if (processes.some(({ usedBytes }) => usedBytes === null)) {
    limits.push("the driver keeps back what some processes use, as it does in containers");
  }
  if (devices.some(({ mig }) => mig)) {
    limits.push("MIG instances are summed up under their device");
  }
  return {
    schema: "tidemark.gpu_top/1",
    atMs: Date.now(),
    devices: devices.map(({ uuid, ...device }) => {
      const own = processes
        .filter((process) => process.uuid === uuid)
        .map(({ pid, usedBytes }) => ({
          pid,
          command: readCommand(pid) ?? [],
          deviceBytes: usedBytes,
          rssBytes: readStatus(pid)?.rssBytes ?? 0,
        }))
        .sort((a, b) => (b.deviceBytes ?? 0) - (a.deviceBytes ?? 0));
      const listed = own.reduce((sum, { deviceBytes }) => sum + (deviceBytes ?? 0), 0);
      const { rows } = selectRows(
        own,
        options,
        0,
        (process) => process.deviceBytes ?? 0,
        ({ pid, command }) => `${pid} ${command.join(" ")}`,
      );
      return { ...device, processes: rows, unlistedBytes: Math.max(0, device.usedBytes - listed) };
    }),
    limits,
  };
}
