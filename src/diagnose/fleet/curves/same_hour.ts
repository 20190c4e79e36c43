/**
 * How far memory rises from one day to the next, at the same hour:
 *
 *   Mo  ▁▂▅▆▅▂▁      daily load                     leak beside it         Mo  ▁▂▅▆▅▂▁
 *   Tu  ▁▂▅▆▅▂▁      every difference is about 0    every difference > 0   Tu  ▃▄▇█▇▄▃
 *
 * A line through a day and a half of load has a slope, because its end is at another hour than its start. These differences
 * have none, whatever the course of the day is, and their spread needs no assumption about how readings depend on each other:
 * neighbouring readings do, which widens the interval of a line by more than the growth of a slow leak.
 */
import type { Bytes, Millis } from "../../../model/base/units.js";
import { firstFrom, medianOf, reorderedQuantile } from "../../series/medians.js";
import type { Readings } from "../../series/readings.js";
import type { Unloaded } from "./load_removal.js";

const DAY_MS: Millis = 24 * 3_600_000;
/** What nearly every hour, or life, rises by at least, as a share of the usual rise. */
const NEARLY = 0.1;
const LEAST_OF_USUAL = 0.3;
const FEWEST_LIVES = { usual: 6, far: 3 };
const FEWEST_DAYS = { usual: 2, far: 1 };

/** Whether nearly every hour of each day is higher than the same hour of the day before. False within two days. */
export function risesFromDayToDay({ times, values }: Readings): boolean {
  const last = times.at(-1) ?? 0;
  const rises = times
    .filter((time) => time + DAY_MS <= last)
    .map((time, at) => levelAt({ times, values }, time + DAY_MS) - (values[at] as number));
  return last - (times[0] ?? 0) >= 2 * DAY_MS && areAlike(Float64Array.from(rises));
}

/**
 * Whether nearly every life rises up to an age as the usual one does, and not only most of them on a day with much load. Lives of
 * one day share its load, so several days are needed, unless it rises further than any load does: `isFar`.
 */
export function risesInEachLife(
  processes: readonly Unloaded[],
  ageMs: Millis,
  isFar: boolean,
): boolean {
  const far = isFar ? "far" : "usual";
  const lives = processes.flatMap(({ process: { startedMs }, rss: { times, values } }) => {
    const at = (share: number) => firstFrom(times, startedMs + share * ageMs);
    const [start, started, end, ended] = [at(0.1), at(0.2), at(0.9), at(1)];
    return started > start && ended > end
      ? [
          {
            bytes: medianOf(values, end, ended) - medianOf(values, start, started),
            day: Math.floor(startedMs / DAY_MS),
          },
        ]
      : [];
  });
  return (
    lives.length >= FEWEST_LIVES[far] &&
    new Set(lives.map(({ day }) => day)).size >= FEWEST_DAYS[far] &&
    areAlike(Float64Array.from(lives, ({ bytes }) => bytes))
  );
}

function areAlike(rises: Float64Array): boolean {
  const usual = reorderedQuantile(rises, 0.5);
  return usual > 0 && reorderedQuantile(rises, NEARLY) > LEAST_OF_USUAL * usual;
}

/** Between readings. */
function levelAt({ times, values }: Readings, timeMs: Millis): Bytes {
  const next = Math.max(1, firstFrom(times, timeMs));
  const [start, end] = [times[next - 1] as number, times[next] as number];
  const [low, high] = [values[next - 1] as number, values[next] as number];
  return low + ((high - low) * (timeMs - start)) / (end - start);
}
