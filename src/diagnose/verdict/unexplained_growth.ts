import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatSlopeBriefly,
  formatSlopeInterval,
} from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import type { Observations } from "../evidence/observations.js";
import { type Finding, open } from "../rules/rule.js";
import { isFirm, risesLate } from "../series/growth.js";
import { memoryName } from "../series/total_growth.js";
import { settledBy } from "../wording/window_needed.js";

/** A window of this length usually has enough samples, ledgers and lookups to name a cause. */
const USUAL_WINDOW_MS: Millis = 120_000;
const SHORTEST_MORE_MS: Millis = 30_000;
const WEIGHT = 0.6;

/**
 * The whole tree grows, but no rule knows the cause: "not enough evidence yet" instead of a harmless verdict.
 * `calm`: what a harmless finding showed about a part; null if no rule has a verdict.
 */
export function unexplainedGrowth(
  { total, windowMs }: Observations,
  calm: Finding | null,
): Finding {
  const neededMs = Math.max(windowMs + SHORTEST_MORE_MS, USUAL_WINDOW_MS, 2 * windowMs);
  const name = memoryName(total);
  if (!isFirm(total) && risesLate(total)) {
    return open(
      `${name} rises by ${formatSlopeBriefly(total.late.slope)} in the last third of the window, to ${formatBytesBriefly(total.level)}: that began too late to distinguish a leak from a temporary load, and ${settledBy(neededMs)}.`,
      WEIGHT,
      neededMs,
    );
  }
  const grows = `${name} grows by ${formatSlopeInterval(total.slope, total.low, total.high)}, to ${formatBytesBriefly(total.level)} now`;
  if (total.shape === "short" || total.slope <= 0) {
    return open(
      `No rule has a verdict on ${formatDurationBriefly(windowMs)} of this program: ${settledBy(neededMs)}.`,
      WEIGHT,
      neededMs,
    );
  }
  const part = calm === null || calm.kind === "steady" ? "" : ` ${calm.detail}`;
  return open(
    `${grows}, and no measurement explains it yet: ${settledBy(neededMs)}.${part}`,
    WEIGHT,
    neededMs,
  );
}
