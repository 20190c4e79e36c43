/** `--gpu` of run and attach, and its related options. */

import { type Command, InvalidArgumentError } from "commander";
import type { DeviceWatchOptions } from "../../inspect/index.js";
import type { Bytes } from "../../model/base/units.js";
import { badUsage } from "../../model/errors/errors.js";
import { parseBytes } from "./options.js";

export interface DeviceOptions {
  readonly gpu?: boolean;
  readonly gpuDumpAt?: number;
  readonly gpuBudget?: Bytes;
}

const DEFAULT_THRESHOLD = 0.9;
const DEFAULT_BUDGET: Bytes = 2 * 2 ** 30;

export function withDeviceOptions(command: Command): void {
  command
    .option(
      "--gpu",
      "also record the figures of its device allocators; write a snapshot before it runs out of memory",
    )
    .option(
      "--gpu-dump-at <share>",
      "with --gpu: write a snapshot when this share of a device is reserved (default 90%)",
      parseShare,
    )
    .option(
      "--gpu-budget <bytes>",
      "with --gpu: total size of all snapshots of one process (default 2GiB)",
      parseBytes,
    );
}

export function deviceWatchOf(options: DeviceOptions): { devices?: DeviceWatchOptions } {
  const { gpu, gpuDumpAt, gpuBudget } = options;
  if (gpu !== true) {
    if (gpuDumpAt !== undefined || gpuBudget !== undefined) {
      throw badUsage("--gpu-dump-at and --gpu-budget have no effect without --gpu", "add --gpu");
    }
    return {};
  }
  return {
    devices: {
      threshold: gpuDumpAt ?? DEFAULT_THRESHOLD,
      budgetBytes: gpuBudget ?? DEFAULT_BUDGET,
    },
  };
}

/** "90%" or "0.9". */
function parseShare(text: string): number {
  const [, figure, sign] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const share = Number(figure) / (sign === "%" ? 100 : 1);
  if (!(share > 0 && share <= 1)) {
    throw new InvalidArgumentError("a share such as 90% or 0.9");
  }
  return share;
}
