/** When the versions of a service are deployed, and how many requests it has. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Oldest first; the last one is deployed at `lastMs`. @param {import("./random.mjs").Random} random @param {number} startMs @param {number} lastMs */
export function versionsOf(random, startMs, lastMs) {
  const before = random.whole(1, 3);
  const times = [startMs];
  for (let at = 1; at < before; at++) {
    times.push(
      random.between(startMs + 0.5 * DAY, Math.max(startMs + 0.6 * DAY, lastMs - 0.4 * DAY)),
    );
  }
  times.sort((a, b) => a - b);
  const major = random.whole(0, 9);
  const first = random.whole(0, 40);
  return [...times, lastMs].map((timeMs, at) => ({
    version: `${major}.${first + at}.0`,
    timeMs,
    // Each release changes the base a little.
    base: 1 + random.normal() * 0.01,
  }));
}

/** Requests a second at a time, by instance. @param {import("./random.mjs").Random} random @param {string} cause @param {number} deployMs */
export function trafficOf(random, cause, deployMs) {
  const mean = random.magnitude(0.5, 300);
  const day = random.between(0.1, 0.9);
  const weekend = cause === "weekly-load" ? random.between(0.1, 0.5) : random.between(0.3, 1.1);
  const peak = random.between(0, 24);
  const more = cause === "more-traffic" ? random.between(1.4, 3) : 1;
  const phase = random.between(0, 100);
  return (/** @type {number} */ timeMs) => {
    const hour = timeMs / HOUR;
    const local = new Date(timeMs - (peak - 14) * HOUR);
    const isWeekend = local.getUTCDay() % 6 === 0;
    const wave = 1 + day * Math.cos((2 * Math.PI * (hour - peak)) / 24);
    const drift = 1 + 0.08 * Math.sin(hour / 3.1 + phase) + 0.05 * Math.sin(hour / 0.7 + 2 * phase);
    return mean * wave * drift * (isWeekend ? weekend : 1) * (timeMs >= deployMs ? more : 1);
  };
}
