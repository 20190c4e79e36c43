import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatSlopeBriefly,
} from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import type { Observations } from "../evidence/observations.js";
import { type Finding, open } from "../rules/rule.js";
import { isFirm, risesLate } from "../series/growth.js";
import { memoryName } from "../series/total_growth.js";
import { settledBy } from "../wording/window_needed.js";

/** A window of this length usually has the samples, ledgers and lookups that name a cause. */
const USUAL_WINDOW_MS: Millis = 120_000;
const SHORTEST_MORE_MS: Millis = 30_000;
const WEIGHT = 0.6;

/** The whole tree grows, and no rule can say by what: an honest "not yet", in place of a calm verdict. `calm`: what
 * a calm rule saw of a part; null where no rule has a verdict. */
export function unexplainedGrowth(
  { total, windowMs }: Observations,
  calm: Finding | null,
): Finding {
  const neededMs = Math.max(windowMs + SHORTEST_MORE_MS, USUAL_WINDOW_MS, 2 * windowMs);
  const name = memoryName(total);
  if (!isFirm(total) && risesLate(total)) {
    return open(
      `${name} rises by ${formatSlopeBriefly(total.late.slope)} in the last third of the window, to ${formatBytesBriefly(total.level)}: that began too late to tell a leak from a load that comes and goes, and ${settledBy(neededMs)}.`,
      WEIGHT,
      neededMs,
    );
  }
  const grows = `${name} grows by ${formatSlopeBriefly(total.slope)} (${formatSlopeBriefly(total.low)} to ${formatSlopeBriefly(total.high)}), to ${formatBytesBriefly(total.level)} now`;
  if (total.shape === "short" || total.slope <= 0) {
    return open(
      `No rule has a verdict on ${formatDurationBriefly(windowMs)} of this program: ${settledBy(neededMs)}.`,
      WEIGHT,
      neededMs,
    );
  }
  const part = calm === null || calm.kind === "steady" ? "" : ` ${calm.detail}`;
  return open(
    `${grows}, and nothing that was measured explains it yet: ${settledBy(neededMs)}.${part}`,
    WEIGHT,
    neededMs,
  );
}
