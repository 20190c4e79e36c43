import type { Growth } from "../growth.js";
import { isLarge, type ProcessObservation } from "../observations.js";
import { type Rule, silent } from "../rule.js";
import { bytesText, rateText } from "../words.js";
import { mappers } from "./mapped_files.rule.js";

/** Shared memory grows: mapped by a process, or left in /dev/shm without any. */
export const sharedMemory: Rule = {
  name: "shared-memory",
  judge(observations) {
    const { target, processes } = observations;
    const grows = (growths: readonly Growth[]) =>
      growths
        .filter((growth) => growth.shape === "growing" && isLarge(growth))
        .sort((x, y) => y.rise - x.rise)[0];
    const mapped = grows(processes.map((process) => process.growth("shmemRssBytes")));
    const left = grows([target.growth("shmUsedBytes")]);
    if (left && !mapped && !processes.some(letsGo)) {
      return silent(
        `What lies in /dev/shm grows by ${rateText(left.slope)}, by another program: none of these processes was seen to map any.`,
      );
    }
    const largest = mapped ?? left;
    if (!largest) {
      return silent("Shared memory does not grow.");
    }
    return {
      says: "leak",
      kind: "shm-growth",
      // Another program may fill /dev/shm; what is mapped here is this one's.
      weight: mapped ? 0.98 : 0.8,
      detail: `Shared memory grows by ${rateText(largest.slope)}, to ${bytesText(largest.level)} now.`,
      growth: largest,
      suspects: mappers(observations),
    };
  },
};

/** Blocks that are made, filled and closed again are mapped at some of the polls: what is mapped falls at
 * times. (The agent's own segment only ever gets more.) */
function letsGo(process: ProcessObservation): boolean {
  const { values } = process.readings("shmemRssBytes");
  return values.some((bytes, i) => bytes < (values[i - 1] ?? 0));
}
