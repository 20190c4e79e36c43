/** The devices of this host as a document: figures of the driver, and of the allocators of recorded programs. */

import type { DeviceReading } from "../../../gpu/devices/device_totals.js";
import { readDevices } from "../../../gpu/devices/device_totals.js";
import { readCommand, readStatus } from "../../../linux/process/process.js";
import { float64At, itemAt } from "../../../model/base/columns.js";
import type { Bytes, Pid, TimeMs } from "../../../model/base/units.js";
import type { GpuTopJson, GpuTopProcessJson } from "../../../model/documents/gpu/gpu_document.js";
import { TidemarkError } from "../../../model/errors/errors.js";
import { deviceMetric, type MemorySeries, MOST_DEVICES } from "../../../model/profile/series.js";
import { growingRecordingOf, openRecording } from "../../../record/index.js";

type Device = GpuTopJson["devices"][number];

/** What a process's allocator held on one device at the last poll of its recording. */
interface AllocatorFigures {
  readonly reservedBytes: Bytes;
  readonly allocatedBytes: Bytes;
  readonly atMs: TimeMs;
  readonly recording: string;
}

/**
 * The recording in progress of each process. Finding one requires a scan of all open files of the host, so
 * repeated polls keep this map. @internal
 */
export type KnownRecordings = Map<Pid, string | null>;

/** @throws TidemarkError TM-E065 if no driver answers */
export async function gpuTopDocument(recordings: KnownRecordings = new Map()): Promise<GpuTopJson> {
  const reading = await readDevices();
  const pids = [...new Set(reading.processes.map(({ pid }) => pid))];
  const figures = new Map(pids.map((pid) => [pid, figuresOf(pid, recordings)]));
  const devices = reading.devices.map((device) => deviceOf(device, reading));
  for (const [pid, own] of figures) {
    join(devices, pid, own);
  }
  for (const device of devices) {
    device.processes.sort((a, b) => (b.deviceBytes ?? 0) - (a.deviceBytes ?? 0));
  }
  return {
    schema: "tidemark.gpu_top/1",
    atMs: Date.now(),
    devices,
    limits: limitsOf(devices),
  };
}

function deviceOf(
  { uuid, ...device }: DeviceReading["devices"][number],
  reading: DeviceReading,
): Device {
  const processes = reading.processes
    .filter((process) => process.uuid === uuid)
    .map(({ pid, usedBytes }): GpuTopProcessJson => {
      const placed = reading.divided.processes.find((one) => one.uuid === uuid && one.pid === pid);
      return {
        pid,
        command: readCommand(pid) ?? [],
        deviceBytes: usedBytes ?? placed?.usedBytes ?? null,
        rssBytes: readStatus(pid)?.rssBytes ?? 0,
        ...(placed === undefined ? {} : { instance: placed.instance }),
      };
    });
  const listed = processes.reduce((sum, { deviceBytes }) => sum + (deviceBytes ?? 0), 0);
  const instances = reading.divided.instances
    .filter((instance) => instance.uuid === uuid)
    .map(({ uuid: _, ...instance }) => instance);
  return {
    ...device,
    ...(instances.length === 0 ? {} : { instances }),
    processes,
    unlistedBytes: Math.max(0, device.usedBytes - listed),
  };
}

/** The devices that it uses, by the device's number in the program. */
function figuresOf(pid: Pid, recordings: KnownRecordings): AllocatorFigures[] {
  if (!recordings.has(pid)) {
    recordings.set(pid, growingRecordingOf(pid));
  }
  const path = recordings.get(pid) ?? null;
  if (path === null) {
    return [];
  }
  try {
    const series = openRecording(path).series.find((one) => one.pid === pid);
    return series === undefined ? [] : lastFigures(series, path);
  } catch (error) {
    // It has ended or was removed in the meantime.
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    recordings.delete(pid);
    return [];
  }
}

function lastFigures({ timesMs, values }: MemorySeries, recording: string): AllocatorFigures[] {
  const found: AllocatorFigures[] = [];
  for (let device = 0; device < MOST_DEVICES; device++) {
    const reserved = values.get(deviceMetric(device, "reservedBytes"));
    const allocated = values.get(deviceMetric(device, "allocatedBytes"));
    const at = reserved?.findLastIndex((bytes) => !Number.isNaN(bytes)) ?? -1;
    const reservedBytes = reserved?.[at] ?? Number.NaN;
    const allocatedBytes = allocated?.[at] ?? Number.NaN;
    if (reservedBytes > 0 && !Number.isNaN(allocatedBytes)) {
      found.push({ reservedBytes, allocatedBytes, atMs: float64At(timesMs, at), recording });
    }
  }
  return found;
}

/** How far an allocator's figure may exceed the driver's, because they were read at different times. */
const SLACK = 1.1;

/**
 * A program numbers its devices from 0, whichever it was given. They are matched with the driver's devices in
 * order. If that is impossible, because more is reserved than the program has there, no figure is shown.
 */
function join(devices: readonly Device[], pid: Pid, figures: readonly AllocatorFigures[]): void {
  const places = devices.flatMap(({ processes }) => processes.filter((one) => one.pid === pid));
  const fits =
    figures.length === places.length &&
    places.every(
      ({ deviceBytes }, row) =>
        deviceBytes === null || itemAt(figures, row).reservedBytes <= deviceBytes * SLACK,
    );
  if (!fits) {
    return;
  }
  for (const [row, place] of places.entries()) {
    const own = itemAt(figures, row);
    place.allocator = own;
    if (place.deviceBytes !== null) {
      place.outsideBytes = Math.max(0, place.deviceBytes - own.reservedBytes);
    }
  }
}

function limitsOf(devices: readonly Device[]): string[] {
  const limits: string[] = [];
  const processes = devices.flatMap((device) => device.processes);
  if (processes.some(({ allocator }) => allocator === undefined)) {
    limits.push(
      "figures of a process's own allocator need a recording: tidemark attach PID --gpu, or tidemark gpu PID for a single reading",
    );
  }
  if (processes.some(({ deviceBytes }) => deviceBytes === null)) {
    limits.push("the driver does not report the memory of some processes, as in containers");
  }
  if (devices.some(({ mig, instances }) => mig && instances === undefined)) {
    limits.push("the driver does not list the instances of a divided device (MIG)");
  }
  return limits;
}
