import {
  formatBytesBriefly,
  formatCount,
  formatDuration,
  formatDurationBriefly,
} from "../../model/base/numbers.js";
import type { GpuDeviceJson } from "../../model/documents/gpu/gpu_document.js";
import { snapshotDevices, trouble, watchedDevices } from "../causes/devices.js";
import type { Observations } from "../evidence/observations.js";
import { SHORTEST_WINDOW_MS } from "../series/growth.js";
import { adviceById } from "../wording/advice.js";
import { settledBy } from "../wording/window_needed.js";
import { type Finding, open, type Rule, silent } from "./rule.js";

const FEWEST_POINTS = 16;
/** In less time, start-up, a filling cache and a leak look the same. */
const LASTING_MS = 20_000;
/** After this time growth can be distinguished from start-up, and even rare polls yield enough readings. */
const SETTLED_MS = 60_000;

/** True if device evidence does not need a long window: a snapshot has its own history, and an error is a fact. */
function hasDeviceFigures(observations: Observations): boolean {
  return (
    snapshotDevices(observations).length > 0 ||
    watchedDevices(observations).some((device) => trouble(device).errors > 0)
  );
}

/** No process was watched, and no other rule finds anything in the snapshot: describe its contents. */
function snapshotAlone(devices: readonly GpuDeviceJson[]): Finding {
  const sum = (of: (device: GpuDeviceJson) => number) =>
    devices.reduce((total, device) => total + of(device), 0);
  const used = formatBytesBriefly(sum(({ end }) => end.requestedBytes));
  const reserved = formatBytesBriefly(sum(({ end }) => end.reservedBytes));
  const events = sum((device) => device.events);
  const failed = sum(({ outOfMemory }) => outOfMemory.length);
  const failures =
    failed === 0
      ? "no failed request"
      : `${formatCount(failed)} failed request${failed === 1 ? "" : "s"}`;
  const history =
    events === 0
      ? "it holds no history of allocations"
      : `its history of ${formatCount(events)} events shows ${failures} and no steps from which growth could be measured`;
  return {
    says: "silent",
    kind: "insufficient-evidence",
    weight: 0.5,
    detail: `The snapshot has ${used} in use of ${reserved} reserved, and ${history}.`,
    advice: [adviceById("TM-A091")],
  };
}

/** A window too short to distinguish growth from start-up. */
export const window: Rule = {
  name: "window",
  judge(observations) {
    const { windowMs, target, evidence } = observations;
    if (target.process.series.timesMs.length === 0 && snapshotDevices(observations).length > 0) {
      return snapshotAlone(snapshotDevices(observations));
    }
    if (hasDeviceFigures(observations)) {
      return silent("Device-allocator figures are reliable even in short windows.");
    }
    const points = target.readings("rssBytes").values.length;
    if (windowMs >= SHORTEST_WINDOW_MS && points === 0 && evidence.sites) {
      const why =
        evidence.selection === undefined
          ? "Memory was not polled"
          : "Metrics of the whole process do not describe the selected rows";
      return silent(
        `${why}; the profile of ${formatDurationBriefly(windowMs)} shows what is kept, from the ages of live allocations.`,
      );
    }
    if (windowMs >= SHORTEST_WINDOW_MS && points >= FEWEST_POINTS) {
      const enough =
        observations.total.shape === "short"
          ? "are too few to measure how fast memory grows"
          : windowMs < LASTING_MS
            ? "show how fast memory grows, but not whether that lasts"
            : "are enough to measure growth";
      return silent(`${points} readings in ${formatDurationBriefly(windowMs)} ${enough}.`);
    }
    if (windowMs >= SHORTEST_WINDOW_MS && points > 1) {
      // Readings far apart: as many as are needed, at their distance.
      const neededMs = Math.max(SETTLED_MS, (windowMs * FEWEST_POINTS) / (points - 1));
      return open(
        `${points} readings in ${formatDurationBriefly(windowMs)} are too few to measure growth, and ${settledBy(observations, neededMs)}.`,
        0.995,
        neededMs,
      );
    }
    // In a short window, the readings of the start and of the end do not count, so their number is misleading.
    const readings = points === 1 ? "1 reading" : `${points} readings`;
    const length =
      windowMs < SHORTEST_WINDOW_MS
        ? `${formatDuration(windowMs)} long`
        : `${formatDurationBriefly(windowMs)} long with ${readings}`;
    return open(
      `The window is ${length}: growth cannot be distinguished from start-up, and ${settledBy(observations, SETTLED_MS)}.`,
      0.995,
      SETTLED_MS,
    );
  },
};
