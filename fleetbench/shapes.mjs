/**
 * Shapes of real services that the causes of generate.mjs do not have. Each changes the plan of a service: its limit, releases,
 * instances and restarts, the share of the traffic that an instance gets, or memory that is added to the model:
 *
 *   addedAt({age, time, random})   bytes at an age and a time, in ms
 *   shareAt(time, isLast)          of the requests of an instance, in the last version or an earlier one
 *
 * No deploy here is a regression, unless the cause begins with "leak".
 */

/** @typedef {import("./random.mjs").Random} Random */
/** @typedef {any} Plan the figures of a service, from generate.mjs */
/** @typedef {{leak: boolean, deploy?: true, of: (random: Random, plan: Plan) => Partial<Plan>}} Shape */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** By cause: what a service does that others do not, and why it looks like a leak. */
export const SHAPES = /** @type {const} */ ({
  /** No memory limit, as most containers outside of Kubernetes: no share of it tells what is little. */
  "without-limit": { leak: false, deploy: true, of: withoutLimit },
  "leak-without-limit": { leak: true, of: withoutLimit },
  /** The new version runs on one or two instances and gets more or fewer requests than the others do. */
  canary: { leak: false, deploy: true, of: canary },
  "leak-on-a-canary": { leak: true, of: canary },
  /** Blue and green: requests move to the instances of the new version over hours, so that their load and caches rise. */
  "traffic-shift": { leak: false, deploy: true, of: trafficShift },
  /** Several releases within hours of each other: none lives long enough to show its level. */
  "deploys-in-a-row": { leak: false, deploy: true, of: deploysInARow },
  /** Arenas, fragments and compiled code: a heap that settles after one to four days, in every version. */
  "arena-growth": { leak: false, of: arenaGrowth },
  /** A job at night whose memory the allocator keeps in part. */
  "night-job": { leak: false, of: nightJob },
  /** A buffer of logs or metrics that rises in a straight line until it is flushed. */
  "log-buffer": { leak: false, of: logBuffer },
  /** One instance after another is restarted every one to three days, so that ages differ and lives are short. */
  "rolling-restarts": { leak: false, of: rollingRestarts },
  /** Single requests that need more than the limit: the kernel kills instances that did not grow. */
  "killed-by-peaks": { leak: false, of: killedByPeaks },
  /** The clock of some hosts jumps by up to three hours, and readings are missing for hours. */
  "clock-jumps": { leak: false, of: clockJumps },
});

/** @param {Random} random @param {Plan} plan */
function withoutLimit(random, { limit, cause }) {
  const added = cause.startsWith("leak") ? 0 : limit * random.between(0.02, 0.15);
  return { isUnlimited: true, newCache: added, newFillMs: random.magnitude(HOUR, 20 * HOUR) };
}

/** @param {Random} random */
function canary(random) {
  const share = random.magnitude(0.2, 3);
  return {
    canaries: random.whole(1, 2),
    shareAt: (/** @type {number} */ _time, /** @type {boolean} */ isLast) => (isLast ? share : 1),
  };
}

/** @param {Random} random @param {Plan} plan */
function trafficShift(random, { versions }) {
  const [from, lasts] = [versions.at(-1).timeMs, random.magnitude(2 * HOUR, 36 * HOUR)];
  return {
    isBlueGreen: true,
    shareAt: (/** @type {number} */ time, /** @type {boolean} */ isLast) => {
      const moved = Math.min(1, Math.max(0.02, (time - from) / lasts));
      return isLast ? moved : Math.max(0.02, 1 - moved);
    },
  };
}

/** @param {Random} random @param {Plan} plan */
function deploysInARow(random, { versions }) {
  const last = versions.at(-1);
  let { timeMs } = last;
  const added = Array.from({ length: random.whole(2, 4) }, (_, at) => {
    timeMs -= random.between(1, 6) * HOUR;
    return { version: `${last.version}-rc${9 - at}`, timeMs, base: last.base };
  }).reverse();
  const before = versions.slice(0, -1).filter((/** @type {any} */ each) => each.timeMs < timeMs);
  return { versions: [...before, ...added, last] };
}

/** @param {Random} random @param {Plan} plan */
function arenaGrowth(random, { limit }) {
  const [bytes, settles] = [limit * random.between(0.02, 0.1), random.magnitude(8, 32) * HOUR];
  return {
    addedAt: (/** @type {{age: number}} */ { age }) => bytes * (1 - Math.exp(-age / settles)),
  };
}

/** @param {Random} random @param {Plan} plan */
function nightJob(random, { limit }) {
  const [bytes, kept] = [limit * random.between(0.05, 0.3), random.between(0, 0.5)];
  const [begins, lasts] = [random.between(0, 24) * HOUR, random.between(0.5, 3) * HOUR];
  return {
    addedAt: (/** @type {{age: number, time: number}} */ { age, time }) => {
      const since = (((time - begins) % DAY) + DAY) % DAY;
      if (since < lasts && since < age) {
        return bytes;
      }
      return age > since - lasts && age > since ? kept * bytes : 0;
    },
  };
}

/** @param {Random} random @param {Plan} plan */
function logBuffer(random, { limit }) {
  const [bytes, period] = [limit * random.between(0.02, 0.1), random.magnitude(3, 48) * HOUR];
  return {
    addedAt: (/** @type {{age: number}} */ { age }) => (bytes * (age % period)) / period,
  };
}

/** @param {Random} random */
function rollingRestarts(random) {
  return { isRestartedDaily: false, restartedEveryMs: random.between(20, 72) * HOUR };
}

/** @param {Random} random @param {Plan} plan */
function killedByPeaks(random, { limit, pollMs }) {
  const perDay = random.magnitude(0.1, 2);
  return {
    addedAt: (/** @type {{random: Random}} */ about) =>
      about.random.chance((perDay * pollMs) / DAY) ? limit : 0,
  };
}

/** @param {Random} random @param {Plan} plan */
function clockJumps(random, { endMs }) {
  const [at, by] = [endMs - random.between(0.5, 6) * DAY, random.between(-3, 3) * HOUR];
  return {
    missing: 0.3,
    clockAt: (/** @type {number} */ time, /** @type {number} */ shard) =>
      shard % 3 === 0 && time > at && time + by < endMs ? time + by : time,
  };
}
