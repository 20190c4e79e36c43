/** Devices and the processes on them, as reported by nvidia-smi. */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { itemAt } from "../../model/base/columns.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { noDeviceDriver, TidemarkError } from "../../model/errors/errors.js";
import { type InstanceReading, parseInstances } from "./device_instances.js";

interface Device {
  readonly index: number;
  readonly name: string;
  readonly uuid: string;
  readonly totalBytes: Bytes;
  readonly usedBytes: Bytes;
  /** Share of time in which a kernel ran, 0 to 1; null if the driver does not report it (MIG). */
  readonly utilisation: number | null;
  readonly mig: boolean;
}

interface DeviceProcess {
  readonly pid: Pid;
  readonly uuid: string;
  /** null if the driver does not report it, as in containers. */
  readonly usedBytes: Bytes | null;
}

export interface DeviceReading {
  readonly devices: Device[];
  readonly processes: DeviceProcess[];
  /** The instances of divided devices. */
  readonly divided: InstanceReading;
}

const DEVICES = "index,uuid,name,memory.total,memory.used,utilization.gpu,mig.mode.current";
const PROCESSES = "pid,gpu_uuid,used_gpu_memory";
/** The driver may hang on a device that fell off the bus. */
const PATIENCE_MS = 5000;
/** `nvidia-smi -q` writes about 20 kB per device. */
const LONGEST_ANSWER = 64 * 2 ** 20;
const TABLE = ["--format=csv,noheader,nounits"];
const MIB = 2 ** 20;

/** @throws TidemarkError TM-E065 if no driver answers */
export async function readDevices(): Promise<DeviceReading> {
  const devices = parseDevices(await ask([`--query-gpu=${DEVICES}`, ...TABLE]));
  if (devices.length === 0) {
    throw noDeviceDriver("nvidia-smi lists no device");
  }
  const processes = parseProcesses(await ask([`--query-compute-apps=${PROCESSES}`, ...TABLE]));
  // `nvidia-smi -q` queries everything, so it runs only if it adds figures.
  const divided = devices.some(({ mig }) => mig)
    ? parseInstances(await ask(["-q"]))
    : { instances: [], processes: [] };
  return { devices, processes, divided };
}

/**
 * Device memory by process, summed over devices; null if no driver answers. Processes whose figure the driver
 * does not report are left out.
 */
export async function readDeviceUse(): Promise<Map<Pid, Bytes> | null> {
  let processes: DeviceProcess[];
  try {
    processes = parseProcesses(await ask([`--query-compute-apps=${PROCESSES}`, ...TABLE]));
  } catch (error) {
    if (error instanceof TidemarkError) {
      return null;
    }
    throw error;
  }
  const use = new Map<Pid, Bytes>();
  for (const { pid, usedBytes } of processes) {
    if (usedBytes !== null) {
      use.set(pid, (use.get(pid) ?? 0) + usedBytes);
    }
  }
  return use;
}

async function ask(query: readonly string[]): Promise<string> {
  try {
    const options = { timeout: PATIENCE_MS, maxBuffer: LONGEST_ANSWER };
    return (await promisify(execFile)("nvidia-smi", query, options)).stdout;
  } catch (error) {
    const { code, killed, stdout, stderr } = error as NodeJS.ErrnoException & {
      killed?: boolean;
      stdout?: string;
      stderr?: string;
    };
    if (code === "ENOENT") {
      throw noDeviceDriver("nvidia-smi is not installed");
    }
    if (killed === true) {
      throw noDeviceDriver("nvidia-smi did not answer in 5 s");
    }
    throw noDeviceDriver(
      itemAt((stdout?.trim() || stderr?.trim() || `nvidia-smi failed`).split("\n"), 0),
    );
  }
}

/** Rows such as "0, GPU-1f0c..., NVIDIA H100 80GB HBM3, 81559, 1024, 37, Disabled". */
function parseDevices(text: string): Device[] {
  return rowsOf(text, 7).flatMap(([index, uuid = "", name = "", total, used, busy = "", mig]) => {
    const totalBytes = Number(total) * MIB;
    return Number.isInteger(Number(index)) && Number.isFinite(totalBytes)
      ? [
          {
            index: Number(index),
            uuid,
            name,
            totalBytes,
            usedBytes: (Number(used) || 0) * MIB,
            utilisation: /^\d+$/.test(busy) ? Number(busy) / 100 : null,
            mig: mig === "Enabled",
          },
        ]
      : [];
  });
}

/** Rows such as "4242, GPU-1f0c..., 1536" or "4242, GPU-1f0c..., [N/A]". */
function parseProcesses(text: string): DeviceProcess[] {
  return rowsOf(text, 3).flatMap(([pid = "", uuid = "", used = ""]) =>
    /^\d+$/.test(pid)
      ? [
          {
            pid: Number(pid),
            uuid,
            usedBytes: /^\d+$/.test(used) ? Number(used) * MIB : null,
          },
        ]
      : [],
  );
}

function rowsOf(text: string, fields: number): string[][] {
  return text
    .split("\n")
    .map((line) => line.split(",").map((field) => field.trim()))
    .filter((row) => row.length === fields);
}
