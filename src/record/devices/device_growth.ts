/** Growth of device memory in a recording in progress, which a single reading cannot show. */
import { theilSen } from "../../diagnose/index.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { deviceMetric, MOST_DEVICES } from "../../model/profile/series.js";
import { openRecording } from "../process/open_recording.js";
import { growingRecordingOf } from "../process/recording_in_progress.js";

interface DeviceGrowth {
  readonly device: number;
  /** Growth of allocated memory per step; null if the program marks no steps. */
  readonly bytesPerStep: Bytes | null;
  readonly bytesPerHour: number;
  /** Steps marked while the figures were read. */
  readonly steps: number;
}

const MS_PER_HOUR = 3_600_000;
const FEWEST_READINGS = 8;

/** Empty if the process is not recorded with its devices. */
export function growthOfDevices(pid: Pid): DeviceGrowth[] {
  const path = growingRecordingOf(pid);
  if (path === null) {
    return [];
  }
  try {
    const { series, events } = openRecording(path);
    const own = series.findLast((one) => one.pid === pid);
    return Array.from({ length: MOST_DEVICES }, (_, device) => device).flatMap((device) => {
      const column = own?.values.get(deviceMetric(device, "allocatedBytes")) ?? [];
      const read = Array.from(column, (value, at) => ({ value, timeMs: own?.timesMs[at] ?? 0 }));
      const known = read.filter(({ value }) => !Number.isNaN(value));
      const [first] = known;
      const last = known.at(-1);
      if (known.length < FEWEST_READINGS || !first || !last) {
        return [];
      }
      const { slope } = theilSen(
        known.map(({ timeMs }) => timeMs),
        known.map(({ value }) => value),
      );
      const steps = events.filter(
        (event) =>
          event.kind === "step-begin" &&
          event.pid === pid &&
          event.timeMs >= first.timeMs &&
          event.timeMs <= last.timeMs,
      ).length;
      return [
        {
          device,
          bytesPerHour: Math.round(slope * MS_PER_HOUR),
          bytesPerStep:
            steps < 2 ? null : Math.round((slope * (last.timeMs - first.timeMs)) / steps),
          steps,
        },
      ];
    });
  } catch (error) {
    if (error instanceof TidemarkError) {
      return []; // it has ended or was damaged in the meantime
    }
    throw error;
  }
}
