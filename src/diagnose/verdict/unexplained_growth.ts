import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatExactCount,
  formatSlopeBriefly,
  formatSlopeInterval,
} from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import { moreObjects } from "../evidence/object_growth.js";
import type { Observations } from "../evidence/observations.js";
import { type Finding, open } from "../rules/rule.js";
import { isFirm, risesLate, smallestRise } from "../series/growth.js";
import { levelNow, memoryName } from "../series/total_growth.js";
import { headlineOf } from "../sites/headline_frame.js";
import { mayKeep, SMALLEST_KEPT_BYTES } from "../sites/suspects.js";
import { settledBy } from "../wording/window_needed.js";
import { frameText } from "../wording/words.js";

/** A window of this length usually has enough samples, ledgers and lookups to name a cause. */
const USUAL_WINDOW_MS: Millis = 120_000;
const SHORTEST_MORE_MS: Millis = 30_000;
const WEIGHT = 0.6;

/**
 * The whole tree grows, but no rule knows the cause: "not enough evidence yet" instead of a harmless verdict.
 * `calm`: what a harmless finding showed about a part; null if no rule has a verdict.
 */
export function unexplainedGrowth(observations: Observations, calm: Finding | null): Finding {
  const { total, windowMs } = observations;
  const neededMs = Math.max(windowMs + SHORTEST_MORE_MS, USUAL_WINDOW_MS, 2 * windowMs);
  const name = memoryName(total);
  if (!isFirm(total) && risesLate(total)) {
    return open(
      `${name} rises by ${formatSlopeBriefly(total.late.slope)} in the last third of the window, to ${formatBytesBriefly(levelNow(total))}: that began too late to distinguish a leak from a temporary load, and ${settledBy(observations, neededMs)}.`,
      WEIGHT,
      neededMs,
    );
  }
  const grows = `${name} grows by ${formatSlopeInterval(total.slope, total.low, total.high)}, to ${formatBytesBriefly(levelNow(total))} now`;
  if (total.shape === "short" || total.slope <= 0) {
    return open(
      `No rule has a verdict on ${formatDurationBriefly(windowMs)} of this program: ${settledBy(observations, neededMs)}.`,
      WEIGHT,
      neededMs,
    );
  }
  const part = calm === null || calm.kind === "steady" ? "" : ` ${calm.detail}`;
  if (total.rise < smallestRise(total.spanMs, total.level)) {
    return growsSlowly(observations, grows, part);
  }
  const unknown =
    part === "" ? "no measurement explains it yet" : "no measurement shows yet whether it lasts";
  return open(
    `${grows}, and ${unknown}: ${settledBy(observations, neededMs)}.${part}`,
    WEIGHT,
    neededMs,
  );
}

const DAY_MS: Millis = 86_400_000;
/** A site that leaks is certain after it has kept this much. */
const ENOUGH_KEPT_BYTES = 1.5 * SMALLEST_KEPT_BYTES;
/** Ages and rates leave out the first third of a window. */
const JUDGED_SHARE = 2 / 3;
const MOST_TYPES = 3;

/** A slow but certain rise: its rate, what it adds in a day, and what sites and censuses show so far. */
function growsSlowly(observations: Observations, grows: string, part: string): Finding {
  const { total, windowMs, sites, evidence } = observations;
  const neededMs = Math.max(1.9 * windowMs, ENOUGH_KEPT_BYTES / total.slope / JUDGED_SHARE);
  const histories = evidence.sites;
  const site = histories
    ? sites.find((one) => one.keptBytes > 0 && mayKeep(one, histories, evidence.window.startMs))
    : undefined;
  const kept =
    site === undefined
      ? []
      : [`${frameText(headlineOf(site.site))} keeps ${formatBytesBriefly(site.keptBytes)}`];
  const more = (moreObjects(evidence)?.types ?? [])
    .filter(({ addedObjects }) => addedObjects > 0)
    .slice(0, MOST_TYPES)
    .map(({ type, addedObjects }) => `${formatExactCount(addedObjects)} more ${type}`);
  const counted = more.length === 0 ? [] : [`censuses count ${more.join(", ")}`];
  const known = [...kept, ...counted].join("; ");
  return open(
    `${grows}: slowly, but evenly, and ${formatBytesBriefly(total.slope * DAY_MS)} a day if it continues; ${settledBy(observations, neededMs)}.${known === "" ? "" : ` So far: ${known}.`}${part}`,
    WEIGHT,
    neededMs,
  );
}
