/** Devices of a program as the rules see them: heartbeats of a recording, or allocator snapshots. */
import { adviceOf, type GpuAdviceId } from "../../gpu/analysis/advice.js";
import type { Bytes } from "../../model/base/units.js";
import type { AdviceJson } from "../../model/documents/diagnosis_document.js";
import type { GpuDeviceJson } from "../../model/documents/gpu/gpu_document.js";
import { type DeviceFigureName, deviceMetric, MOST_DEVICES } from "../../model/profile/series.js";
import type { Observations, ProcessObservation } from "../evidence/observations.js";
import type { Growth } from "../series/growth.js";
import type { Readings } from "../series/readings.js";

/** One device as one process's allocator told it over time. */
export interface WatchedDevice {
  readonly process: ProcessObservation;
  readonly device: number;
  growth(figure: DeviceFigureName): Growth;
  readings(figure: DeviceFigureName): Readings;
  /** The newest reading; null where there is none. */
  last(figure: DeviceFigureName): number | null;
  /** The highest reading less the first: of what only counts up, what came during the window. */
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

/** It ran out during the window, or came so near that the allocator had to give back what it kept. */
export function trouble(device: WatchedDevice): {
  readonly errors: number;
  readonly retries: number;
} {
  return { errors: device.rise("outOfMemory"), retries: device.rise("allocationRetries") };
}

/** What neither the driver has free nor this allocator holds: other processes, the context, libraries. */
export function othersBytes(device: WatchedDevice): Bytes | null {
  const total = device.last("totalBytes");
  const free = device.last("freeBytes");
  const reserved = device.last("reservedBytes");
  return total === null || free === null || reserved === null
    ? null
    : Math.max(0, total - free - reserved);
}

/** Advice by id: as a snapshot words it, which knows the settings' name of its version, else in general. */
export function deviceAdvice(
  { evidence }: Observations,
  ids: readonly GpuAdviceId[],
): AdviceJson[] {
  const worded = (evidence.snapshots ?? []).flatMap(({ advice }) => advice);
  return adviceOf(ids).map((advice) => worded.find(({ id }) => id === advice.id) ?? advice);
}

/** Of all snapshots. */
export function snapshotDevices({ evidence }: Observations): GpuDeviceJson[] {
  return (evidence.snapshots ?? []).flatMap(({ devices }) => devices);
}
