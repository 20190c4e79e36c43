/**
 * Growth of processes that are alike: of a version, or of one instance through its restarts.
 *
 *   window   7 d, then 1 d, 6 h, 1 h; a shorter one only for growth that began within it
 *            and since the bend of a level curve that begins to rise (onset.ts)
 *   curve    age_curve.ts         grows?  ../../series/growth.ts, the decision for single processes, too
 *                                 lasts?  lasting_growth.ts
 *
 * A leak is what grows and lasts. What grows and may still be a filling cache is undecided.
 */
import type { Bytes, Millis, TimeMs } from "../../../model/base/units.js";
import type { FrameJson } from "../../../model/documents/documents.js";
import type { FleetShape } from "../../../model/documents/fleet_diagnosis_document.js";
import { assessGrowth, smallestRise } from "../../series/growth.js";
import { firstFrom } from "../../series/medians.js";
import { median } from "../../series/trend.js";
import { SOONER } from "../../wording/fleet_sentence.js";
import { type AgeCurve, ageCurve, EARLY, lateOnAxes } from "../curves/age_curve.js";
import { type LastingGrowth, lastingGrowth } from "../curves/lasting_growth.js";
import { loadRange, type Unloaded } from "../curves/load_removal.js";
import { isAboveBefore, onsetOf } from "../curves/onset.js";
import { risesFromDayToDay, risesInEachLife } from "../curves/same_hour.js";
import { straightLives } from "../curves/straight_lives.js";
import type { NewLine } from "../lines/new_lines.js";
import type { SeenLife } from "../lines/seen_lines.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
export const WINDOWS_MS: readonly Millis[] = [7 * DAY_MS, DAY_MS, 6 * HOUR_MS, HOUR_MS];
/** Start-up, which no window needs. */
const START_UP_MS = 10 * 60_000;
/** Smallest rise over a part of a longer window, as a share of the level. */
const LEAST_OF_PART = 0.04;
/** The same over a whole window. */
const LEAST_OF_LEVEL = 0.03;
/** The same as a share of the limit: whatever rises less is far from doing harm. */
const LEAST_OF_LIMIT = 0.005;
/** A version that ran for less than this share of a window is judged in a shorter one. */
const LEAST_USED = 0.3;
/** Within a day most caches fill, and the load has not been seen whole. */
export const LEAST_LASTING_MS = 20 * HOUR_MS;
/** The least age of a version whose RSS shows a leak: what lives for a day has then been full for hours. Its processes may be
 * younger, where all of them are restarted every day. */
export const LEAST_DECIDED_MS = 30 * HOUR_MS;
/** The same of processes that live for less, and rise in a line that is certainly straight. */
const SHORT_STRAIGHT_MS = 16 * HOUR_MS;
/** A younger version that rises in a line where earlier versions were level, and will soon pass its limit: until when, and the slope of
 * the later half. */
const URGENT = { ms: 5 * DAY_MS, late: 0.85, latest: 1.4 };
/** A shorter part of a window shows only growth that will pass the limit. */
const SHORT_MS = 8 * HOUR_MS;
/** A shorter curve shows a leak if it passes the limit within a week, however it fills: the share of what is to come that
 * is sure, and the least rise as a share of the limit. */
const SURE_TO_COME = 0.5;
const LEAST_FATAL = SOONER;
/** A curve does not rise by more than a few times what its processes do: the share of that rise which one of them moves by. */
const LEAST_OF_FATAL = 0.25;
/** No daily load: the low end of the interval as a share of the rate, and the rise as a share of the level. */
const STRAIGHT = { low: 0.8, share: 0.1, latest: 1.6 };
/** The same over a whole day, at whose end the load is what it was: also the slope of the later half. */
const WHOLE_DAY = { ms: 22 * HOUR_MS, low: 0.6, share: 0.05, late: 0.8, latest: 1.4 };
/** For less than five days, load that was removed only in part can look like growth of this share of its range; without request
 * rates, for less than two days, of the larger share; of the largest share in a part of the window, and in a service whose week is
 * open. */
const LEAST_OF_LOAD = { known: 0.4, inDays: 1.2, ofPart: 3 };
export const LOAD_SEEN_MS = 5 * DAY_MS;
/** Growth that lasts, as a share of what filled, which does not count: what fills goes on by less and less. */
const MOST_REST = { inDays: 0.5, later: 0.25 };
/** The low end of the interval of growth that lasts, as a share of the rate. */
export const LEAST_SURE = 0.3;
/** Where what is left of the load, or growth in bursts, leaves a wide interval: a curve of two days whose halves rise alike, by more
 * than the load does and by this share of the limit. What fills within a day has slowed down to less. */
const STEADY = { lengthMs: 36 * HOUR_MS, ofLimit: 0.03, ofLoad: 3, least: 0.75, most: 1.6 };
/** The same where nearly every hour of each day is higher than on the day before: how many times the least rise, and the slope of the
 * later half. */
const DAILY = { rise: 1.5, late: 0.7 };
/** Every fit agrees about what lasts: the low end of the interval as a share of the rate. The slope of the later half is then
 * compared with that of the time after so many durations of filling, up to a share of the curve. */
const TIGHT = { lengthMs: 40 * HOUR_MS, low: 0.8, fills: 3, most: 0.45, late: 0.6 };
/** What is left without earlier versions rises by this multiple of what these did: more than the load of any day. */
const FAR_BEYOND = 2;
/** The slope of the later half of a curve as a share of that before. */
const SLOWED = { inDay: 0.8, inDays: 0.7, later: 0.5 };
const FILLED_MS = 3 * DAY_MS;
/** The same of what grows faster and faster: load that rises. */
export const FASTER = 2.5;
/** Processes that are all restarted within this time do no harm if they rise by less than this share of the limit until then; of
 * the smaller share, if they rise in a line that is certainly straight: its low end as a share of the rate, and the slope of its
 * later half. */
const SHORT_LIVES = { ms: 30 * HOUR_MS, share: 0.03 };
const STRAIGHT_SHORT = { share: 0.01, low: 0.75, late: 0.85, latest: 1.3 };
/** Ends of lives from which they count as restarted. */
const FEWEST_ENDS = 3;

export interface GroupGrowth extends LastingGrowth {
  /** Whether it follows the number of requests more closely than time. */
  readonly isByWork: boolean;
  readonly shape: FleetShape;
  /** Whether even the level that a filling cache would approach is above the limit. */
  readonly isFatal: boolean;
  readonly windowMs: Millis;
  readonly curve: AgeCurve;
  readonly level: Bytes;
  /** The least limit of its processes; 0: none is known. */
  readonly limit: Bytes;
  /** The line that shows it, where RSS does not. */
  readonly shownBy?: FrameJson;
  /** The line that shows it, where no earlier version had that line. */
  readonly newLine?: NewLine;
}

export interface Judging {
  readonly endMs: TimeMs;
  /** Half the width of intervals in standard errors. */
  readonly z: number;
  /** Whether what follows the load was removed. */
  readonly isLoadKnown: boolean;
  /** Whether the service has not shown how much more a working day needs than a weekend: see isWeekOpen. */
  readonly isWeekOpen: boolean;
  /** How far the load moves memory, where it is not the difference that its removal made. */
  readonly loadBytes?: Bytes;
  /** How far the memory of earlier versions rose and fell at the same ages, if that was removed. */
  readonly earlierBytes?: Bytes;
  /** Whether the version before was level at the same ages. */
  readonly isAfterLevel?: boolean;
  /** What the agent saw of the versions before. */
  readonly before: readonly SeenLife[];
}

/** The decision of the longest window, or of a shorter one that shows a leak which began in it. null: no readings. */
export function groupGrowth(processes: readonly Unloaded[], judging: Judging): GroupGrowth | null {
  let longest: GroupGrowth | null = null;
  for (const windowMs of WINDOWS_MS) {
    if (longest !== null && windowMs > longest.windowMs * (1 - LEAST_USED)) {
      continue;
    }
    const growth = growthIn(processes, windowMs, judging, longest !== null);
    if (growth?.shape === "leaking" && (longest === null || isAboveBefore(longest.curve, growth))) {
      return growth;
    }
    if (longest === null && growth !== null) {
      longest = growth;
      const since = sinceOnset(growth, processes, judging);
      if (since !== null) {
        return since;
      }
    }
    // A part of a filling curve also looks straight.
    if (longest !== null && !["flat", "stepped"].includes(longest.shape)) {
      return longest;
    }
  }
  return longest;
}

/** A leak that began within the longest window; otherwise null. */
function sinceOnset(
  longest: GroupGrowth,
  processes: readonly Unloaded[],
  judging: Judging,
): GroupGrowth | null {
  const onsetMs = longest.shape === "undecided" ? onsetOf(longest.curve) : null;
  const since = onsetMs === null ? null : growthIn(processes, onsetMs, judging, true);
  return since?.shape === "leaking" && isAboveBefore(longest.curve, since) ? since : null;
}

function growthIn(
  processes: readonly Unloaded[],
  windowMs: Millis,
  { endMs, z, isLoadKnown, loadBytes, isWeekOpen, earlierBytes, isAfterLevel }: Judging,
  isPart: boolean,
): GroupGrowth | null {
  const window = { startMs: endMs - windowMs, endMs };
  const limits = processes.flatMap(({ process }) => process.limitBytes || []);
  const limit = limits.length === 0 ? 0 : Math.min(...limits);
  const isShort = isPart && windowMs < SHORT_MS;
  if (isShort && !movesFar(processes, window, LEAST_OF_FATAL * LEAST_FATAL * limit)) {
    return null;
  }
  const whole = ageCurve(processes, window);
  if (whole === null) {
    return null;
  }
  const byTime = whole.axis === "age" ? withoutStartUp(whole) : whole;
  if (isShort && !mayBeFatal(byTime, limit)) {
    return null;
  }
  const best = lastingByBest(byTime, z);
  const { curve, lasting, isByWork } = best ?? { curve: byTime, lasting: null, isByWork: false };
  const lengthMs = (curve.times.at(-1) ?? 0) - (curve.times[0] ?? 0);
  const level = levelOf(processes, endMs);
  const about = { windowMs: Math.min(windowMs, lengthMs + curve.binMs), curve, level, limit };
  if (lasting === null) {
    return { ...NOTHING, ...about, isByWork, isFatal: false, shape: "short" };
  }
  const assessed = assessGrowth(curve);
  const least = isPart
    ? Math.max(smallestRise(lengthMs, level), LEAST_OF_PART * level)
    : Math.max(LEAST_OF_LEVEL * level, LEAST_OF_LIMIT * limit);
  const leastRate = least / lengthMs;
  const isYoung = lengthMs < FILLED_MS;
  const isTight = lengthMs >= TIGHT.lengthMs && lasting.low > TIGHT.low * lasting.rate;
  const filledBy = isTight ? Math.min(TIGHT.most, (TIGHT.fills * lasting.fillMs) / lengthMs) : 0;
  const late = lateOnAxes(byTime, isByWork, Math.max(EARLY, filledBy));
  const ofDays = isYoung ? SLOWED.inDays : SLOWED.later;
  const leastLate = lengthMs < DAY_MS ? SLOWED.inDay : Math.min(ofDays, isTight ? TIGHT.late : 1);
  const isStraight =
    lasting.low > STRAIGHT.low * lasting.rate &&
    lasting.rate * lengthMs > STRAIGHT.share * level &&
    late < STRAIGHT.latest;
  const risesAlike =
    earlierBytes !== undefined &&
    curve.axis === "age" &&
    risesInEachLife(
      processes,
      byTime.times.at(-1) ?? 0,
      lasting.straight.rate * lengthMs > FAR_BEYOND * earlierBytes,
    );
  const isStraightForDay =
    lengthMs >= WHOLE_DAY.ms &&
    (lasting.low > WHOLE_DAY.low * lasting.rate || risesAlike) &&
    lasting.rate * lengthMs > WHOLE_DAY.share * level &&
    late > WHOLE_DAY.late &&
    late < WHOLE_DAY.latest;
  const lives = straightLives(processes, limit);
  // Even the level that a filling cache would approach is above the limit.
  const isFatal =
    lives !== null ||
    (limit > 0 &&
      Math.max(level, curve.values.at(-1) ?? 0) + SURE_TO_COME * lasting.toCome > limit &&
      assessed.rise > LEAST_FATAL * limit &&
      lasting.straight.low > 0);
  const firstMs = Math.min(...processes.map(({ process }) => process.startedMs));
  const isUrgent =
    isAfterLevel === true &&
    isStraight &&
    late > URGENT.late &&
    late < URGENT.latest &&
    limit > 0 &&
    level + lasting.rate * URGENT.ms > limit;
  const isOld =
    lengthMs >= (isStraight ? SHORT_STRAIGHT_MS : LEAST_LASTING_MS) &&
    endMs - firstMs >= (isUrgent ? LEAST_LASTING_MS : LEAST_DECIDED_MS);
  const isStraightShort =
    (lasting.low > STRAIGHT_SHORT.low * lasting.rate || risesAlike) &&
    late > STRAIGHT_SHORT.late &&
    late < STRAIGHT_SHORT.latest;
  const isEndedInTime = (rate: number) =>
    curve.axis === "age" &&
    rate * lengthMs < (isStraightShort ? STRAIGHT_SHORT : SHORT_LIVES).share * limit &&
    areShort(processes, window);
  const loadMoves = () => loadBytes ?? loadRange(processes);
  const isSteady =
    lengthMs >= STEADY.lengthMs &&
    assessed.rise > Math.max(STEADY.ofLimit * limit, leastRate * lengthMs) &&
    assessed.rise > loadMoves() &&
    risesSteadily(byTime);
  const risesDaily =
    lasting.rate > DAILY.rise * leastRate && late > DAILY.late && risesFromDayToDay(byTime);
  // Some fit may have a rate of 0 where the curve plainly goes on.
  const goesOn = isSteady || risesDaily || risesAlike;
  const grows =
    lives !== null ||
    ((assessed.shape === "growing" || isStraight || risesDaily) && lasting.high > leastRate);
  const isFarAboveLoad = isSteady && assessed.rise > STEADY.ofLoad * loadMoves();
  const isSure =
    (lasting.low > LEAST_SURE * lasting.rate || goesOn) &&
    lasting.rate > leastRate &&
    late > leastLate &&
    late < FASTER &&
    (lasting.straight.low > 0 || isFarAboveLoad || risesDaily) &&
    lasting.rate * lengthMs >
      (isYoung && !isTight ? MOST_REST.inDays : MOST_REST.later) * lasting.fillBytes;
  const lasts = (isOld && isSure && !isEndedInTime(lasting.rate)) || isFatal;
  const mayBeLoad =
    !isLoadKnown && lengthMs < 2 * DAY_MS && !isFatal && !isStraight && !isStraightForDay;
  const isLoadSeen = lengthMs >= 2 * DAY_MS || processes.every(({ work }) => work !== null);
  const ofLoad = isLoadSeen
    ? LEAST_OF_LOAD.known
    : isPart && curve.axis === "time"
      ? LEAST_OF_LOAD.ofPart
      : LEAST_OF_LOAD.inDays;
  const mayFollowLoad = (rate: number) =>
    !isFatal &&
    ((lengthMs < LOAD_SEEN_MS && rate * lengthMs < ofLoad * loadMoves()) ||
      (isWeekOpen && rate * lengthMs < LEAST_OF_LOAD.ofPart * loadMoves()));
  const hasFilled =
    !goesOn &&
    lasting.fillBytes > least &&
    lasting.rate * lengthMs < MOST_REST.later * lasting.fillBytes &&
    lasting.fillMs < lengthMs / 2;
  const shape = ((): FleetShape => {
    if (assessed.shape === "short") {
      return "short";
    }
    if (grows && lasts) {
      return mayBeLoad || mayFollowLoad(lasting.rate) ? "undecided" : "leaking";
    }
    if (hasFilled) {
      return "filling";
    }
    if (
      (grows && (lasting.low > 0 || assessed.rise > least)) ||
      (goesOn && assessed.rise > least)
    ) {
      return "undecided";
    }
    return assessed.shape === "stepped" ? "stepped" : "flat";
  })();
  // Whether it may fill is then irrelevant.
  const interval =
    (isFatal || goesOn) && lasting.low <= 0 && shape !== "flat" && shape !== "stepped"
      ? (lives ?? lasting.straight)
      : {};
  return { ...lasting, ...interval, ...about, isByWork, isFatal, shape };
}

/** Whether some process has readings in the window that differ by so many bytes. */
function movesFar(
  processes: readonly Unloaded[],
  { startMs, endMs }: { readonly startMs: TimeMs; readonly endMs: TimeMs },
  bytes: Bytes,
): boolean {
  return processes.some(({ rss: { times, values } }) => {
    let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let at = firstFrom(times, startMs); at < times.length; at++) {
      if ((times[at] as number) > endMs) {
        break;
      }
      least = Math.min(least, values[at] as number);
      most = Math.max(most, values[at] as number);
    }
    return most - least > bytes;
  });
}

/** Whether it rises far enough for a leak that will pass the limit. Costs less than fits. */
function mayBeFatal({ times, values, workTimes }: AgeCurve, limit: Bytes): boolean {
  return (
    limit > 0 &&
    [times, workTimes ?? times].some(
      (axis) => assessGrowth({ times: axis, values }).rise > LEAST_FATAL * limit,
    )
  );
}

/** Over time, or over the requests if growth follows them more closely. `slowing`: of lasting_growth.ts. null: too few points. */
export function lastingByBest(
  byTime: AgeCurve,
  z: number,
  slowing?: readonly number[],
): {
  readonly curve: AgeCurve;
  readonly lasting: LastingGrowth;
  readonly isByWork: boolean;
} | null {
  const byWork = byTime.workTimes === null ? null : { ...byTime, times: byTime.workTimes };
  const [ofTime, ofWork] = [
    lastingGrowth(byTime, z, true, slowing),
    byWork && lastingGrowth(byWork, z, false, slowing),
  ];
  // Growth by request is a straight line over the requests, and follows the load over time.
  if (byWork !== null && ofTime !== null && ofWork !== null && ofWork.squares < ofTime.squares) {
    return { curve: byWork, lasting: ofWork, isByWork: true };
  }
  return ofTime === null ? null : { curve: byTime, lasting: ofTime, isByWork: false };
}

/** Whether the second half of the time adds about as much as the first, between the medians of thirds. */
function risesSteadily({ times, workTimes, values }: AgeCurve): boolean {
  const axis = workTimes ?? times;
  const [first, last] = [axis[0] ?? 0, axis.at(-1) ?? 0];
  const [one, two] = [1, 2].map((part) => firstFrom(axis, first + (part / 3) * (last - first)));
  const [start, middle, end] = [
    median(values.slice(0, one)),
    median(values.slice(one, two)),
    median(values.slice(two)),
  ];
  const share = (end - middle) / (middle - start);
  return middle > start && share >= STEADY.least && share <= STEADY.most;
}

/** Whether no process lived long, although there was time for it. */
export function areShort(
  processes: readonly Unloaded[],
  { endMs }: { readonly endMs: TimeMs },
): boolean {
  const firstMs = Math.min(...processes.map(({ process }) => process.startedMs));
  const lives = processes.map(({ process }) => (process.endedMs ?? endMs) - process.startedMs);
  const ends = processes.filter(({ process }) => (process.endedMs ?? endMs) < endMs);
  const hadTime = endMs - firstMs > SHORT_LIVES.ms;
  return hadTime && ends.length >= FEWEST_ENDS && Math.max(...lives) < SHORT_LIVES.ms;
}

const NOTHING = {
  rate: 0,
  low: 0,
  high: 0,
  fillBytes: 0,
  fillMs: 0,
  toCome: 0,
  squares: 0,
  straight: { rate: 0, low: 0, high: 0 },
};

function withoutStartUp(curve: AgeCurve): AgeCurve {
  const { times } = curve;
  const last = times.at(-1) ?? 0;
  const from = times.findIndex((time) => time >= Math.min(START_UP_MS, last / 6));
  return {
    ...curve,
    times: times.slice(from),
    values: curve.values.slice(from),
    weights: curve.weights.slice(from),
    workTimes: curve.workTimes?.slice(from) ?? null,
  };
}

/** Median RSS at the end of the running processes, otherwise of all. */
export function levelOf(processes: readonly Unloaded[], endMs: TimeMs): Bytes {
  const running = processes.filter(({ process }) => (process.endedMs ?? endMs) >= endMs);
  const last = (running.length > 0 ? running : processes).flatMap(
    ({ process }) => process.rss.values.at(-1) ?? [],
  );
  return median(last);
}
