import { isLarge } from "../observations.js";
import { type Rule, silent } from "../rule.js";
import { bytesText, rateText } from "../words.js";

/** Shared memory grows: mapped by a process, or left in /dev/shm without any. */
export const sharedMemory: Rule = {
  name: "shared-memory",
  judge({ target, processes, sites }) {
    const mapped = processes.map((process) => process.growth("shmemRssBytes"));
    const grows = [...mapped, target.growth("shmUsedBytes")].filter(
      (growth) => growth.shape === "growing" && isLarge(growth),
    );
    const [largest] = grows.sort((a, b) => b.rise - a.rise);
    if (!largest) {
      return silent("Shared memory does not grow.");
    }
    return {
      says: "leak",
      kind: "shm-growth",
      // Another program may fill /dev/shm; what is mapped here is this one's.
      weight: mapped.includes(largest) ? 0.96 : 0.8,
      detail: `Shared memory grows by ${rateText(largest.slope)}, to ${bytesText(largest.level)} now.`,
      growth: largest,
      suspects: sites.filter(({ course }) => course === "keeps"),
    };
  },
};
