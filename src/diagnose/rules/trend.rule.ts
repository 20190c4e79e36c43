import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatSlopeBriefly,
} from "../../model/base/numbers.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import { LEDGER_PARTS } from "../../model/profile/ledger.js";
import { partGrowth } from "../evidence/ledger_growth.js";
import { type Observations, SMALLEST_RISE_BYTES } from "../evidence/observations.js";
import { isEven, isFirm, risesLate, smallestRise } from "../series/growth.js";
import { type Swings, swingsOf, swingsText } from "../series/swings.js";
import { levelNow, memoryName, type TotalGrowth } from "../series/total_growth.js";
import { keptSpanMs } from "../sites/suspects.js";
import { adviceById } from "../wording/advice.js";
import { levelText } from "../wording/summary_sentence.js";
import { hasEnded, settledBy } from "../wording/window_needed.js";
import { type Finding, open, type Rule, silent } from "./rule.js";

/** Uses only the memory trend of the process tree. Rules with better evidence have more weight. */
export const trend: Rule = {
  name: "trend",
  judge(observations) {
    const { target, total: rss, windowMs } = observations;
    if (rss.shape === "short") {
      return rss.readings.values.length === 0 ? littleYoung(observations) : null;
    }
    const name = memoryName(rss);
    if (isFirm(rss) || target.grows("rssBytes")) {
      return grows(observations);
    }
    if (isOpen(observations)) {
      return undecided(observations);
    }
    if (stillRises(observations)) {
      return slowsDown(observations);
    }
    const swings = rss.metric === rss.end.metric ? swingsOf(rss.readings) : null;
    if (swings !== null) {
      return climbs(observations, swings)
        ? climbing(observations, swings)
        : fluctuates(observations, swings);
    }
    const mayGoOn = rss.late.low > 0 && windowMs < UNCERTAIN_MS;
    if (rss.low > 0 && rss.rise >= (mayGoOn ? SMALLEST_EVEN_BYTES : SMALLEST_SEEN_BYTES)) {
      return slowsDown(observations);
    }
    if (risesLate(rss)) {
      return silent(
        `${name} rises by ${formatSlopeBriefly(rss.late.slope)} in the last third of the window, to ${formatBytesBriefly(levelNow(rss))}.`,
      );
    }
    if (rss.shape === "stepped" && Math.max(rss.rise, rss.wholeRise) >= SMALLEST_SEEN_BYTES) {
      return {
        says: "no leak",
        kind: "steady",
        weight: 0.45,
        detail: `${name} rose in a part of the window, to ${formatBytesBriefly(levelNow(rss))}, and is flat in the rest.`,
      };
    }
    const atStart = startRise(rss);
    if (atStart > 0) {
      return {
        says: "no leak",
        kind: "warm-up",
        weight: 0.5,
        detail: `${name} rose by ${formatBytesBriefly(riseFromLowest(rss, atStart))} at the start and has been flat since, at ${formatBytesBriefly(levelNow(rss))}.`,
      };
    }
    return {
      says: "no leak",
      kind: "steady",
      weight: 0.5,
      detail: rss.low > 0 ? notSure(observations) : `${levelOf(rss)}.`,
      ...(rss.low > 0 && rss.rise >= SMALLEST_EVEN_BYTES
        ? { sentence: slightly(observations) }
        : {}),
    };
  },
};

/** What does not grow may be another measure than the one that the header shows. */
function levelOf(rss: TotalGrowth): string {
  const level = `${memoryName(rss.end)} is ${formatBytesBriefly(rss.end.bytes)}`;
  return rss.metric === rss.end.metric
    ? `${level}, and does not grow`
    : `${memoryName(rss)} does not grow. ${level} at the end`;
}

/** 95 %. */
const STANDARD_ERRORS = 2;

/**
 * Without readings, as in an imported pool: live memory has not grown by more than what is young and still live. Memory
 * that no profile contains may have.
 */
function littleYoung(observations: Observations): Finding | null {
  const { evidence, sites, windowMs } = observations;
  if (evidence.sites === undefined || evidence.importedFrom !== undefined) {
    return null;
  }
  const spanMs = keptSpanMs(windowMs);
  let [live, young, variance] = [0, 0, 0];
  for (const { site, keptBytes } of sites) {
    const own = site.liveBytes.at(-1) ?? 0;
    live += own;
    young += keptBytes;
    variance += own > 0 ? site.standardErrorBytes ** 2 * Math.min(1, keptBytes / own) : 0;
  }
  if (young + STANDARD_ERRORS * Math.sqrt(variance) >= smallestRise(spanMs, live)) {
    return null;
  }
  const part = young === 0 ? "none of it was" : `only ${formatBytesBriefly(young)} of it were`;
  return open(
    `${formatBytesBriefly(live)} were live after ${formatDurationBriefly(windowMs)}, and ${part} allocated in the last ${formatDurationBriefly(spanMs)}, so live allocations do not grow. Only a recorder shows whether other memory does (mapped files, shared memory, free memory in allocators), and ${settledBy(observations, MINUTE_MS)}.`,
    0.5,
    MINUTE_MS,
  );
}

/** Memory that rose and fell, or does so repeatedly: neither flat, nor a cache. */
function fluctuates(observations: Observations, swings: Swings): Finding {
  const { total } = observations;
  const text = swingsText(swings, total.end.bytes);
  return {
    says: "no leak",
    kind: "steady",
    weight: SWINGS_WEIGHT,
    detail: `${memoryName(total)} ${text}.`,
    sentence: `Memory ${text}: ${levelText(observations)}.`,
  };
}

/** Whether memory rises in a short window (the interval excludes zero), and the lowest levels between its swings rise too. */
function climbs({ total, windowMs }: Observations, { troughs }: Swings): boolean {
  const middle = troughs.length >> 1;
  const lowest = (some: readonly Bytes[]) =>
    some.reduce((least, bytes) => Math.min(least, bytes), Number.POSITIVE_INFINITY);
  return (
    windowMs < SETTLED_MS &&
    middle > 0 &&
    total.low > 0 &&
    total.rise >= SMALLEST_SEEN_BYTES &&
    lowest(troughs.slice(middle)) - lowest(troughs.slice(0, middle)) >= SMALLEST_SEEN_BYTES
  );
}

/** A text that each addition copies, or batches that leave something behind. */
function climbing(observations: Observations, swings: Swings): Finding {
  const { total } = observations;
  const neededMs = Math.max(2 * observations.windowMs, neededFor(total));
  return open(
    `${memoryName(total)} ${swingsText(swings, total.end.bytes)}, and its lowest levels rise too, but not enough to show a leak in such a window; ${settledBy(observations, neededMs)}.`,
    0.5,
    neededMs,
  );
}

/** Growth at the start: the rise of the whole window minus the rise after the first third; 0 if it is small. */
function startRise({ wholeRise, rise, level }: TotalGrowth): Bytes {
  const atStart = wholeRise - Math.max(0, rise);
  return atStart >= SMALLEST_RISE_BYTES && atStart > 0.1 * level ? atStart : 0;
}

/** The same from the lowest reading, which the header shows as the minimum. */
function riseFromLowest({ rise, level, readings: { values } }: TotalGrowth, atStart: Bytes): Bytes {
  const lowest = values.reduce((least, value) => Math.min(least, value), level);
  return Math.max(atStart, level - Math.max(0, rise) - lowest);
}

/** A rise that is not certain to continue: the end of a warm-up if most of it was at the start; else a longer window decides. */
function slowsDown(observations: Observations): Finding {
  const { total, windowMs } = observations;
  const detail = notSure(observations);
  const atStart = startRise(total);
  if (atStart > total.rise) {
    return {
      says: "no leak",
      kind: "warm-up",
      weight: 0.45,
      detail: `${memoryName(total)} rose by ${formatBytesBriefly(riseFromLowest(total, atStart))} at the start. ${detail}`,
      sentence: `Memory grew mostly at the start, and much less since (a warm-up): ${levelText(observations)}.`,
    };
  }
  if (stillRises(observations) || windowMs < UNCERTAIN_MS) {
    const neededMs = windowMs < UNCERTAIN_MS ? MINUTE_MS : neededFor(total);
    return open(
      `${detail} A slow leak looks the same; ${settledBy(observations, neededMs)}.`,
      0.5,
      neededMs,
    );
  }
  return {
    says: "no leak",
    kind: "steady",
    weight: 0.45,
    detail,
    sentence: slightly(observations),
  };
}

/** Beside a header that shows growth, "memory is steady" would contradict it. */
function slightly(observations: Observations): string {
  const { rise, spanMs, level, late } = observations.total;
  const why =
    late.low <= 0
      ? "but not certainly in the last third of the window"
      : rise < smallestRise(spanMs, level)
        ? "too little to be called a leak"
        : "too unevenly to be called a leak";
  return `Memory rose by ${formatBytesBriefly(rise)} in ${formatDurationBriefly(spanMs)}, ${why}: ${levelText(observations)}.`;
}

/** A rise whose interval excludes zero, but which is small, or has ended, or may do so. */
function notSure({ total }: Observations): string {
  const { slope, low, high, late, rise, spanMs, level } = total;
  const rose = `${memoryName(total)} rose by ${formatBytesBriefly(rise)} in the last ${formatDurationBriefly(spanMs)} (${formatSlopeBriefly(slope)}, 95 % interval ${formatSlopeBriefly(low)} to ${formatSlopeBriefly(high)}), to ${formatBytesBriefly(levelNow(total))}`;
  if (late.low <= 0) {
    return `${rose}, but the last third of the window shows no certain rise (${formatSlopeBriefly(late.low)} to ${formatSlopeBriefly(late.high)}).`;
  }
  const least = smallestRise(spanMs, level);
  if (rise < least) {
    return `${rose}: less than ${formatBytesBriefly(least)}, which programs that do not leak gain in such a time.`;
  }
  const leastRate = least / spanMs;
  const ofLate = `that of the last third (${formatSlopeBriefly(late.low)} to ${formatSlopeBriefly(late.high)})`;
  const which =
    low >= leastRate
      ? `${ofLate} includes`
      : late.low >= leastRate
        ? "this interval includes"
        : `this interval and ${ofLate} include`;
  return `${rose}, but ${which} rates below ${formatSlopeBriefly(leastRate)}, the least that counts in such a window.`;
}

/** A rise that is visible in a chart although it is too small to be significant. */
const SMALLEST_SEEN_BYTES = 1_000_000;
/** An even rise of a few minutes, too small to be called a leak, is no sign of calm either. */
const SMALLEST_EVEN_BYTES = 500_000;
const SETTLED_MS = 300_000;
const JUDGED_SHARE = 2 / 3;
/** More than a filled cache, which is then part of the swing, and less than any finding that names a cause. */
const SWINGS_WEIGHT = 0.61;
const MINUTE_MS = 60_000;
/** In a shorter window, a rise whose interval excludes zero may be a slow leak. A window of a minute may end a moment early. */
const UNCERTAIN_MS = 0.95 * MINUTE_MS;
/** Without an agent, a shorter window can miss a slow leak. */
const SHORT_WITHOUT_AGENT_MS = MINUTE_MS;

/** Without sites, a short window may hide significant growth in the noise. */
function isOpen({ evidence, windowMs, total }: Observations): boolean {
  return (
    !evidence.sites &&
    windowMs < SHORT_WITHOUT_AGENT_MS &&
    total.high * total.spanMs > smallestRise(total.spanMs, total.level)
  );
}

function undecided(observations: Observations): Finding {
  const { total, windowMs, evidence } = observations;
  const neededMs = Math.max(SHORT_WITHOUT_AGENT_MS, windowMs * 1.5);
  return open(
    `${evidence.importedFrom === undefined && !evidence.processes.some(({ profiled }) => profiled) ? "No agent ran" : "There are no allocation sites"}, and in ${formatDurationBriefly(windowMs)} growth of up to ${formatSlopeBriefly(total.high)} cannot be excluded: ${settledBy(observations, neededMs)}.`,
    0.5,
    neededMs,
  );
}

/** A window of a few minutes in which memory rises evenly, but by less than what counts. */
function stillRises({ total, windowMs, evidence }: Observations): boolean {
  return (
    windowMs < SETTLED_MS &&
    evidence.importedFrom === undefined &&
    isEven(total) &&
    total.rise >= SMALLEST_EVEN_BYTES
  );
}

/** How long a window has to be for this rise to count, if it goes on. */
function neededFor({ low, level }: TotalGrowth): Millis {
  const lengths = [2, 5, 10, 30, 60].map((minutes) => minutes * MINUTE_MS);
  const counts = (lengthMs: Millis) => {
    const spanMs = JUDGED_SHARE * lengthMs;
    return low * spanMs > smallestRise(spanMs, level);
  };
  return lengths.find(counts) ?? 2 * 60 * MINUTE_MS;
}

/** The trend alone does not show the kind of growth, so the finding asks for the evidence that would, if there is none. */
function grows(observations: Observations): Finding {
  const { total, target, suspects, bounded, evidence } = observations;
  const name = memoryName(total);
  const detail = `${name} grows by ${formatSlopeBriefly(total.slope)}, to ${formatBytesBriefly(levelNow(total))} now`;
  const isSplit = LEDGER_PARTS.some((part) => partGrowth(target, part) !== null);
  return evidence.sites || isSplit || suspects.length + bounded.length > 0
    ? silent(`${detail}.`)
    : {
        says: "leak",
        kind: "insufficient-evidence",
        weight: 0.55,
        detail: `${detail}; ${evidence.importedFrom === undefined ? "an agent or a ledger is needed to show" : "the file does not contain"} which part grows.`,
        growth: total,
        ...(evidence.importedFrom === undefined &&
        evidence.refusal === undefined &&
        !hasEnded(observations)
          ? { advice: [adviceById("TM-A098")] }
          : {}),
      };
}
