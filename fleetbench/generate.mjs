/**
 * Labelled fleets from a seed. Every figure comes from a wide range, so that no threshold of the diagnosis can be fitted
 * to it:
 *
 *   RSS = base + model + cache (age, requests) + load (time) + leak (age or requests) + collector's sawtooth + noise
 *
 * Around it: versions with rolling deploys, daily and weekly traffic, restarts and kills at the limit, pods of different
 * ages, autoscaling, noisy hosts, missing readings, hours without a collector, agents on some instances.
 */
import { trafficOf, versionsOf } from "./deploys.mjs";
import { Random } from "./random.mjs";
import { SHAPES } from "./shapes.mjs";

/** @typedef {import("./folder.mjs").Fleet} Fleet */
/** @typedef {import("./folder.mjs").Process} Process */
/** @typedef {import("./folder.mjs").Label} Label */

const MIB = 2 ** 20;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** A Wednesday; fleets end up to two weeks later. */
const ORIGIN = Date.UTC(2026, 2, 18);

/** By name: whether it leaks, and whether its last deploy is innocent but changes memory. */
export const CAUSES = /** @type {const} */ ({
  "leak-with-version": { leak: true },
  "leak-in-every-version": { leak: true },
  "leak-on-one-shard": { leak: true },
  "leak-slow": { leak: true },
  "leak-in-a-child": { leak: true },
  "leak-by-endpoint": { leak: true },
  steady: { leak: false },
  "daily-load": { leak: false },
  "weekly-load": { leak: false },
  "cache-fills": { leak: false },
  "warm-up": { leak: false },
  "per-request-cost": { leak: false },
  "odd-host": { leak: false },
  "larger-cache": { leak: false, deploy: true },
  "bigger-model": { leak: false, deploy: true },
  "more-traffic": { leak: false, deploy: true },
  "new-cache": { leak: false, deploy: true },
});
/** @typedef {keyof typeof CAUSES | keyof typeof SHAPES} Cause */
const ALL = { ...CAUSES, ...SHAPES };
export const INNOCENT_DEPLOYS = /** @type {Cause[]} */ (Object.keys(CAUSES)).filter(
  (cause) => "deploy" in ALL[cause],
);
export const SHAPE_CAUSES = /** @type {Cause[]} */ (Object.keys(SHAPES));

/** @param {number} seed @param {{causes?: Cause[]}} [options] @returns {Fleet} */
export function generateFleet(seed, { causes } = {}) {
  const random = new Random(seed * 7919 + 17);
  const endMs = ORIGIN + Math.round(random.between(0, 14 * DAY));
  const names = causes ?? /** @type {Cause[]} */ (Object.keys(CAUSES));
  /** @type {Fleet} */
  const fleet = { name: `seed-${seed}`, endMs, processes: [], labels: {} };
  names.forEach((cause, at) => {
    const service = `${cause}-${at}`;
    const { processes, label } = serviceOf(
      service,
      cause,
      endMs,
      new Random(seed * 104729 + at * 31 + 5),
    );
    fleet.processes.push(...processes);
    fleet.labels[service] = label;
  });
  return fleet;
}

/**
 * @param {string} service @param {Cause} cause @param {number} endMs @param {Random} random
 * @returns {{processes: Process[], label: Label}}
 */
function serviceOf(service, cause, endMs, random) {
  const limit = random.magnitude(128, 16_384) * MIB;
  const isLeak = ALL[cause].leak;
  const lengthMs = random.between(8, 13) * DAY;
  const startMs = endMs - lengthMs;
  const perDay =
    limit * (cause === "leak-slow" ? random.magnitude(0.005, 0.02) : random.magnitude(0.02, 1));
  // A leak has run for a day and a half and for 3 % of the limit.
  const leakedMs = Math.min(
    lengthMs - DAY,
    Math.max(random.magnitude(36 * HOUR, 6 * DAY), (0.03 * limit * DAY) / perDay),
  );
  const changesMemory = "deploy" in ALL[cause];
  const lastDeployMs =
    cause === "leak-in-every-version"
      ? random.magnitude(30 * HOUR, 5 * DAY)
      : isLeak
        ? leakedMs
        : random.magnitude(2 * HOUR, 6 * DAY);
  const versions = versionsOf(random, startMs, endMs - lastDeployMs);
  const shards = cause === "leak-on-one-shard" ? random.whole(4, 16) : random.whole(1, 14);
  const odd =
    cause === "leak-on-one-shard" || cause === "odd-host" ? random.whole(0, shards - 1) : -1;
  const app = service.replaceAll("-", "_");
  const traffic = trafficOf(random, cause, endMs - lastDeployMs);
  const loaded = ["daily-load", "weekly-load", "per-request-cost", "more-traffic"].includes(cause);
  const hasCache = random.chance(0.4) || ["cache-fills", "larger-cache"].includes(cause);
  const figures = {
    service,
    cause,
    app,
    endMs,
    limit,
    traffic,
    versions,
    base: limit * random.between(0.12, 0.35),
    load:
      limit *
      (loaded ? random.between(0.05, 0.2) : random.chance(0.6) ? random.between(0, 0.06) : 0),
    sticky: random.chance(0.5) ? random.between(0, 0.9) : 0,
    cache: hasCache ? limit * random.between(0.03, 0.12) : 0,
    largerCache: cause === "larger-cache" ? random.between(1.5, 3) : 1,
    biggerModel: cause === "bigger-model" ? limit * random.between(0.05, 0.25) : 0,
    fillMs: random.magnitude(0.3 * HOUR, cause === "larger-cache" ? 20 * HOUR : 12 * HOUR),
    isLogarithmic: random.chance(0.3),
    warmUp: limit * random.between(0.01, cause === "warm-up" ? 0.2 : 0.06),
    warmUpMs: random.magnitude(60_000, 40 * 60_000),
    noise: random.magnitude(0.0005, 0.02),
    sawtooth: random.chance(0.3) ? random.between(0.002, 0.02) : 0,
    pollMs: random.pick([60_000, 120_000, 300_000]),
    missing: random.chance(0.5) ? random.between(0, 0.15) : 0,
    outage: random.chance(0.3) ? endMs - random.between(0.2, 6) * DAY : 0,
    outageMs: random.between(1, 9) * HOUR,
    perDay,
    isByRequest: cause === "leak-by-endpoint",
    odd,
    agentShare: random.pick([0, 0.1, 0.3, 1]),
    knowsRequests: random.chance(0.5),
    crashesPerDay: random.chance(0.3) ? random.magnitude(0.05, 1) : 0,
    isRestartedDaily: random.chance(0.12),
    autoscaled: random.chance(0.25) ? random.whole(1, 5) : 0,
    ...(cause === "new-cache"
      ? newCacheOf(random, limit)
      : { newCache: 0, newFillMs: HOUR, isBoundKnown: false }),
    // Most diagnoses of a process find the container of what leaks, which has no bound.
    isHolderKnown: isLeak && random.chance(0.9),
  };
  /** @type {Plan} */
  const plan = {
    ...figures,
    ...(cause in SHAPES
      ? SHAPES[/** @type {keyof typeof SHAPES} */ (cause)].of(random, figures)
      : {}),
  };
  plan.leakFrom = cause === "leak-in-every-version" ? 0 : plan.versions.length - 1;
  /** @type {Process[]} */
  const processes = [];
  const instances = plan.isBlueGreen ? 2 * shards : shards;
  for (let shard = 0; shard < instances + plan.autoscaled; shard++) {
    const isExtra = shard >= instances;
    processes.push(...livesOf(plan, shard, isExtra, new Random(random.whole(0, 2 ** 31))));
  }
  const label = labelOf(plan, processes, changesMemory);
  return { processes, label };
}

/**
 * In a line that no earlier version had. Of one that fills in a straight line, a ring or what lives for a time, the diagnosis
 * of a process finds the bound, or the name shows it.
 * @param {Random} random @param {number} limit
 */
function newCacheOf(random, limit) {
  const newCache = limit * random.magnitude(0.02, 0.2);
  const newFillMs = random.magnitude(0.3 * HOUR, 20 * HOUR);
  const isNewLogarithmic = random.chance(0.3);
  const isBoundKnown = random.chance(0.5);
  const isStraight = !isNewLogarithmic && random.chance(0.4);
  const isNamed = isStraight ? !isBoundKnown || random.chance(0.5) : random.chance(0.3);
  const newShape = isNewLogarithmic ? "slowing" : isStraight ? "straight" : "bending";
  return { newCache, newFillMs, newShape, isBoundKnown, isNamed };
}

/** @typedef {any} Plan the figures of a service, from serviceOf */

/**
 * The processes of one instance, one after another.
 * @param {Plan} plan @param {number} shard @param {boolean} isExtra @param {Random} random
 * @returns {Process[]}
 */
function livesOf(plan, shard, isExtra, random) {
  const instance = `${plan.app}-${shard}`;
  const share =
    random.between(0.7, 1.3) * (plan.cause === "odd-host" && shard === plan.odd ? 1.6 : 1);
  const hasAgent =
    random.unit() < plan.agentShare || (plan.agentShare > 0 && shard === Math.max(0, plan.odd));
  const rolloutMs = random.between(0, 1800_000) * 1;
  /** @type {Process[]} */
  const lives = [];
  releasesOf(plan, shard).forEach(([release, at, next]) => {
    const until = next === null ? plan.endMs : next + rolloutMs;
    let from = release.timeMs + (at === 0 ? random.between(0, 2 * DAY) : rolloutMs);
    while (from < until) {
      if (isExtra) {
        // Autoscaled pods run around the peak only.
        from += random.between(2, 14) * HOUR;
      }
      const ends = [until];
      if (plan.crashesPerDay > 0) {
        ends.push(from - (Math.log(1 - random.unit()) * DAY) / plan.crashesPerDay);
      }
      if (plan.restartedEveryMs) {
        ends.push(
          from + plan.restartedEveryMs * (from === release.timeMs + rolloutMs ? random.unit() : 1),
        );
      }
      if (plan.isRestartedDaily) {
        ends.push((Math.floor(from / DAY) + 1) * DAY + 3 * HOUR);
      }
      if (isExtra) {
        ends.push(from + random.between(3, 12) * HOUR);
      }
      if (from >= until) {
        break;
      }
      const life = lifeOf({
        plan,
        shard,
        share,
        release,
        at,
        from,
        until: Math.min(...ends),
        random,
        hasAgent,
      });
      const ended = life.untilMs < plan.endMs ? life.untilMs : null;
      lives.push({
        process: `${instance}/${lives.length}`,
        service: plan.service,
        version: release.version,
        instance,
        startedMs: Math.round(from),
        endedMs: ended === null ? null : Math.round(ended),
        limitBytes: plan.isUnlimited ? 0 : Math.round(plan.limit),
        ...life.readings,
        kind: null,
      });
      from = life.untilMs + random.between(5_000, 120_000);
    }
  });
  return lives;
}

/**
 * The versions that an instance runs, with their places and the time of the next. Only some instances get a canary; where
 * requests move from one half to the other, each half has its own version.
 * @param {Plan} plan @param {number} shard @returns {[release: any, at: number, nextMs: number | null][]}
 */
function releasesOf({ versions, canaries, isBlueGreen }, shard) {
  const last = versions.length - 1;
  const isOld = canaries === undefined ? isBlueGreen && shard % 2 === 0 : shard >= canaries;
  const isNew = isBlueGreen && shard % 2 === 1;
  return versions.flatMap((/** @type {any} */ release, /** @type {number} */ at) => {
    const next = at < last && !(isOld && at === last - 1) ? versions[at + 1].timeMs : null;
    return (isOld && at === last) || (isNew && at < last) ? [] : [[release, at, next]];
  });
}

/**
 * The share of a cache that is filled after an amount of work.
 * @param {number} work @param {number} fillMs @param {"bending" | "slowing" | "straight"} shape
 */
function filledAt(work, fillMs, shape) {
  if (shape === "straight") {
    return Math.min(1, work / fillMs);
  }
  return shape === "slowing"
    ? Math.min(1, Math.log(1 + (9 * work) / (3 * fillMs)) / Math.log(10))
    : 1 - Math.exp(-work / fillMs);
}

/** @param {any} about */
function lifeOf({ plan, shard, share, release, at, from, until, random, hasAgent }) {
  const isLast = at === plan.versions.length - 1;
  const leaks =
    plan.cause.startsWith("leak") &&
    at >= plan.leakFrom &&
    (plan.cause !== "leak-on-one-shard" || shard === plan.odd);
  const cacheBytes = plan.cache * (isLast ? plan.largerCache : 1);
  const model = isLast ? plan.biggerModel : 0;
  const base = plan.base * release.base * random.between(0.98, 1.02);
  const mean = 24;
  let typical = 0;
  for (let hour = 0; hour < mean; hour++) {
    typical += plan.traffic(from + hour * HOUR) / mean;
  }
  const usual = Math.max(1e-9, plan.traffic.length === 0 ? 1 : typical);
  const peakRate = plan.peakRate ?? usual;
  plan.peakRate = peakRate;
  /** @type {import("./folder.mjs").Readings} */
  const rss = { times: [], values: [] };
  /** @type {import("./folder.mjs").Readings} */
  const requests = { times: [], values: [] };
  const sites = {
    /** @type {import("./folder.mjs").Readings} */ leak: { times: [], values: [] },
    /** @type {import("./folder.mjs").Readings} */ cache: { times: [], values: [] },
    /** @type {import("./folder.mjs").Readings} */ stored: { times: [], values: [] },
    /** @type {import("./folder.mjs").Readings} */ load: { times: [], values: [] },
    /** @type {import("./folder.mjs").Readings} */ imports: { times: [], values: [] },
  };
  const period = random.between(0.3, 5) * HOUR;
  let [work, highest, wander, leaked] = [0, 0, 0, 0];
  let gap = 0;
  let nextSites = from + 300_000;
  let time = from + random.between(0, plan.pollMs);
  for (; time < until; time += plan.pollMs) {
    const age = time - from;
    const rate = plan.traffic(time) * share * (plan.shareAt?.(time, isLast) ?? 1);
    work += (rate / (peakRate * share)) * plan.pollMs;
    const now = rate / (2 * peakRate);
    highest = Math.max(highest, now);
    const shape = plan.isLogarithmic ? "slowing" : "bending";
    const cache = cacheBytes * filledAt(work, plan.fillMs, shape);
    const stored = isLast ? plan.newCache * filledAt(work, plan.newFillMs, plan.newShape) : 0;
    const load = plan.load * (plan.sticky * highest + (1 - plan.sticky) * now);
    leaked = leaks ? (plan.perDay * (plan.isByRequest ? work : age)) / DAY : 0;
    const saw = plan.sawtooth * base * ((age % period) / period);
    wander = 0.9 * wander + plan.noise * base * 0.44 * random.normal();
    const spike = random.chance(0.002) ? base * random.between(0, 0.1) : 0;
    const start = plan.warmUp * (1 - Math.exp(-age / plan.warmUpMs));
    const added = plan.addedAt?.({ age, time, random }) ?? 0;
    const steady = base + model + start + cache + stored + load + leaked + added;
    const bytes = steady + saw + wander + spike;
    if (bytes >= plan.limit && !plan.isUnlimited) {
      return { untilMs: time, readings: readingsOf() };
    }
    gap = gap > 0 ? gap - 1 : random.chance(plan.missing / 10) ? random.whole(1, 20) : 0;
    const isOut = time >= plan.outage && time < plan.outage + plan.outageMs;
    const read = Math.round(plan.clockAt?.(time, shard) ?? time);
    const isLater = read > (rss.times.at(-1) ?? 0);
    if (gap === 0 && !isOut && isLater && !random.chance(plan.missing / 4)) {
      rss.times.push(read);
      rss.values.push(Math.round(bytes));
      requests.times.push(read);
      requests.values.push(rate * random.between(0.9, 1.1));
      if (hasAgent && time >= nextSites) {
        nextSites = time + (age < 6 * HOUR ? 0.25 : 2) * HOUR;
        const sample = (/** @type {any} */ site, /** @type {number} */ value) => {
          site.times.push(read);
          site.values.push(Math.max(0, value * (1 + 0.05 * random.normal())));
        };
        sample(sites.leak, leaked);
        sample(sites.cache, cache);
        sample(sites.load, load);
        sample(sites.imports, start + 0.3 * base);
        if (stored > 0) {
          sample(sites.stored, stored);
        }
      }
    }
  }
  return { untilMs: until, readings: readingsOf() };

  /** As the diagnosis of the process finds them. */
  function holdersOf() {
    const [line, leaking] = [storedStack()[0], frames("remember", "state.py", 41)[0]];
    return [
      ...(plan.isBoundKnown && sites.stored.times.length > 0
        ? [{ line, path: ["module results", "RESULTS"], type: "dict", bound: 10_000 }]
        : []),
      ...(plan.isHolderKnown && sites.leak.values.some((value) => value > 0)
        ? [{ line: leaking, path: ["module state", "STATE"], type: "dict" }]
        : []),
    ];
  }

  function storedStack() {
    return plan.isNamed
      ? frames("recent", "results_cache.py", 63)
      : frames("stored", "results.py", 63);
  }

  /** @param {string} call @param {string} file @param {number} line */
  function frames(call, file, line) {
    return [
      [call, `/srv/${plan.app}/${file}`, line],
      ["handle", `/srv/${plan.app}/main.py`, 20],
    ].map(([name, path, at]) => ({ function: name, file: path, line: at, kind: "python" }));
  }

  function readingsOf() {
    const all = [
      { stack: frames("remember", "state.py", 41), live: sites.leak },
      { stack: frames("cached", "cache.py", 12), live: sites.cache },
      { stack: storedStack(), live: sites.stored },
      { stack: frames("work", "views.py", 77), live: sites.load },
      { stack: frames("<module>", "setup.py", 3), live: sites.imports },
    ];
    return /** @type {any} */ ({
      rss,
      requests: plan.knowsRequests ? requests : null,
      sites: all.filter(({ live }) => live.values.some((value) => value > 0)),
      holders: holdersOf(),
    });
  }
}

/** @param {Plan} plan @param {Process[]} processes @param {boolean} changesMemory @returns {Label} */
function labelOf(plan, processes, changesMemory) {
  const { cause, versions } = plan;
  if (!ALL[/** @type {Cause} */ (cause)].leak) {
    return { leak: false, cause, ...(changesMemory ? { innocentDeploy: true } : {}) };
  }
  const isOld = cause === "leak-in-every-version";
  const first = isOld ? versions[0] : versions.at(-1);
  const ofLeak = processes.filter(
    ({ version, instance }) =>
      (isOld || version === first.version) &&
      (plan.odd < 0 || instance === `${plan.app}-${plan.odd}`),
  );
  const withAgent = ofLeak.some(({ sites }) => sites.length > 0);
  return {
    leak: true,
    cause,
    version: isOld ? null : first.version,
    startMs: Math.min(...ofLeak.map(({ startedMs }) => startedMs)),
    bytesPerDay: Math.round(plan.perDay),
    limitBytes: plan.isUnlimited ? 0 : Math.round(plan.limit),
    ...(plan.odd < 0 ? {} : { instances: [`${plan.app}-${plan.odd}`] }),
    ...(withAgent ? { culprit: { file: "state.py", functions: ["remember"] } } : {}),
  };
}
