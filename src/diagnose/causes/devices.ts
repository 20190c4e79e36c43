/** A program's devices as input of the rules: heartbeats of a recording, or allocator snapshots. */
import { adviceOf, type GpuAdviceId } from "../../gpu/analysis/advice.js";
import type { Bytes } from "../../model/base/units.js";
import type { AdviceJson } from "../../model/documents/diagnosis_document.js";
import type { GpuDeviceJson } from "../../model/documents/gpu/gpu_document.js";
import { type DeviceFigureName, deviceMetric, MOST_DEVICES } from "../../model/profile/series.js";
import type { Observations, ProcessObservation } from "../evidence/observations.js";
import type { Growth } from "../series/growth.js";
import type { Readings } from "../series/readings.js";

/** One device as reported by one process's allocator over time. */
export interface WatchedDevice {
  readonly process: ProcessObservation;
  readonly device: number;
  growth(figure: DeviceFigureName): Growth;
  readings(figure: DeviceFigureName): Readings;
  /** The newest reading; null if there is none. */
  last(figure: DeviceFigureName): number | null;
  /** The highest reading minus the first: for a counter, its increase during the window. */
  rise(figure: DeviceFigureName): number;
}

export function watchedDevices({ processes }: Observations): WatchedDevice[] {
  return processes.flatMap((process) =>
    Array.from({ length: MOST_DEVICES }, (_, device) => watch(process, device)).filter(
      ({ last }) => last("allocatedBytes") !== null,
    ),
  );
}

function watch(process: ProcessObservation, device: number): WatchedDevice {
  const readings = (figure: DeviceFigureName) => process.readings(deviceMetric(device, figure));
  return {
    process,
    device,
    readings,
    growth: (figure) => process.growth(deviceMetric(device, figure)),
    last: (figure) => readings(figure).values.at(-1) ?? null,
    rise: (figure) => {
      const { values } = readings(figure);
      return values.reduce((a, b) => Math.max(a, b), values[0] ?? 0) - (values[0] ?? 0);
    },
  };
}

/** True if it ran out of memory during the window, or so nearly that the allocator had to release its cache. */
export function trouble(device: WatchedDevice): {
  readonly errors: number;
  readonly retries: number;
} {
  return { errors: device.rise("outOfMemory"), retries: device.rise("allocationRetries") };
}

/** Memory that is neither free in the driver nor held by this allocator: other processes, the context, libraries. */
export function othersBytes(device: WatchedDevice): Bytes | null {
  const total = device.last("totalBytes");
  const free = device.last("freeBytes");
  const reserved = device.last("reservedBytes");
  return total === null || free === null || reserved === null
    ? null
    : Math.max(0, total - free - reserved);
}

/**
 * Advice by id: from a snapshot if there is one, because it knows the setting's name in its version; otherwise
 * the general text.
 */
export function deviceAdvice(
  { evidence }: Observations,
  ids: readonly GpuAdviceId[],
): AdviceJson[] {
  const worded = (evidence.snapshots ?? []).flatMap(({ advice }) => advice);
  return adviceOf(ids).map((advice) => worded.find(({ id }) => id === advice.id) ?? advice);
}

/** Devices of all snapshots. */
export function snapshotDevices({ evidence }: Observations): GpuDeviceJson[] {
  return (evidence.snapshots ?? []).flatMap(({ devices }) => devices);
}
