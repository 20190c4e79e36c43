/**
 * Replays each service of a fleet and compares the answers with its label. A service is asked at the end of the fleet, at
 * moments before it (an answer that was ever wrong has sent a wrong alert), and, if it leaks, from the start of its leak
 * on until the leak is reported.
 */
import { CALM_MOMENTS_MS, DETECTION_MS } from "./moments.mjs";

/** @typedef {import("./folder.mjs").Fleet} Fleet */
/** @typedef {import("./folder.mjs").Process} Process */
/**
 * @typedef {{fleet: string, service: string, cause: string, isLeak: boolean, reported: boolean,
 *   everFalse: boolean, falseRegression: boolean, innocentDeploy: boolean, versionRight: boolean | null,
 *   culpritRight: boolean | null, instancesRight: boolean | null, hours: number | null,
 *   limitSharePerDay: number | null, leakedHours: number | null,
 *   hasAgent: boolean, answer: string,
 *   figures?: {last: number, after: [hours: number, figure: number][]}}} Scored
 */

/**
 * @param {Fleet} fleet @param {import("./answers.mjs").Rule} rule
 * @param {readonly number[]} deployAgesMs at which innocent deploys are asked as well @returns {Scored[]}
 */
export function scoreFleet({ name, endMs, processes, labels }, rule, deployAgesMs = []) {
  const services = Object.keys(labels).length;
  return Object.entries(labels).map(([service, label]) => {
    const own = processes.filter((each) => each.service === service);
    const at = (/** @type {number} */ timeMs) =>
      rule(service, until(own, timeMs), timeMs, services);
    const last = at(endMs);
    const earlier = label.leak
      ? [(label.startMs ?? endMs) - 3_600_000].map(at)
      : calmMoments(own, endMs, label.innocentDeploy ? deployAgesMs : []).map(at);
    // Before its leak a service does not leak.
    const everFalse = earlier.some(({ leak }) => leak) || (!label.leak && last.leak);
    const answers = label.leak
      ? earlier.slice(0, label.version === null ? 0 : 1)
      : [...earlier, last];
    const { bytesPerDay = 0, limitBytes = 0 } = label;
    return {
      fleet: name,
      service,
      cause: label.cause,
      isLeak: label.leak,
      reported: last.leak,
      everFalse: label.leak && label.version === null ? false : everFalse,
      innocentDeploy: label.innocentDeploy === true,
      falseRegression: answers.some(({ isRegression }) => isRegression),
      versionRight: label.leak && last.leak ? last.version === (label.version ?? null) : null,
      culpritRight:
        label.culprit === undefined || !last.leak
          ? null
          : last.culprit?.file.endsWith(label.culprit.file) === true &&
            label.culprit.functions.includes(last.culprit.function),
      instancesRight:
        label.instances === undefined || !last.leak || last.instances === null
          ? null
          : areSame(last.instances, runningOf(own, label.instances)),
      hours: label.leak ? hoursUntil(at, label.startMs ?? endMs, endMs) : null,
      limitSharePerDay: label.leak && limitBytes > 0 ? bytesPerDay / limitBytes : null,
      leakedHours: label.leak ? (endMs - (label.startMs ?? endMs)) / 3_600_000 : null,
      hasAgent: label.culprit !== undefined,
      answer: last.shown,
      ...(last.figure === undefined
        ? {}
        : {
            figures: {
              last: last.figure,
              after: label.leak ? figuresAfter(at, label.startMs ?? endMs, endMs) : [],
            },
          }),
    };
  });
}

/** @param {readonly string[]} some @param {readonly string[]} others */
function areSame(some, others) {
  return new Set([...some, ...others]).size === some.length && some.length === others.length;
}

/** @param {Process[]} processes @param {readonly string[]} wanted */
function runningOf(processes, wanted) {
  const running = new Set(
    processes.flatMap(({ instance, endedMs }) => (endedMs === null ? [instance] : [])),
  );
  return wanted.filter((instance) => running.has(instance));
}

/** @param {Process[]} processes @param {number} endMs @param {readonly number[]} deployAgesMs */
function calmMoments(processes, endMs, deployAgesMs) {
  /** @type {Map<string, number>} */
  const starts = new Map();
  for (const { version, startedMs } of processes) {
    starts.set(version, Math.min(startedMs, starts.get(version) ?? startedMs));
  }
  const deployMs = Math.max(...starts.values());
  return [
    ...CALM_MOMENTS_MS.map((ago) => endMs - ago),
    ...deployAgesMs.map((age) => deployMs + age).filter((timeMs) => timeMs < endMs),
  ];
}

/** @param {(timeMs: number) => {leak: boolean}} at @param {number} startMs @param {number} endMs */
function hoursUntil(at, startMs, endMs) {
  for (const ms of DETECTION_MS) {
    if (startMs + ms > endMs) {
      return null;
    }
    if (at(startMs + ms).leak) {
      return ms / 3_600_000;
    }
  }
  return null;
}

/**
 * What a simple rule compares with its threshold, at the moments after the start of a leak.
 * @param {(timeMs: number) => {figure?: number}} at @param {number} startMs @param {number} endMs
 * @returns {[hours: number, figure: number][]}
 */
function figuresAfter(at, startMs, endMs) {
  return DETECTION_MS.filter((ms) => startMs + ms <= endMs).map((ms) => [
    ms / 3_600_000,
    at(startMs + ms).figure ?? 0,
  ]);
}

/**
 * A simple rule with the threshold that finds most leaks while it is as precise as another rule. null: none is, or it is
 * no simple rule.
 * @param {Scored[]} rows @param {number | null} precision
 */
export function atPrecision(rows, precision) {
  const known = rows.flatMap(({ isLeak, figures }) => (figures ? [{ isLeak, ...figures }] : []));
  const leaks = known.filter(({ isLeak }) => isLeak);
  const thresholds = [...new Set(known.map(({ last }) => last))].sort((a, b) => a - b);
  const least = precision ?? Number.POSITIVE_INFINITY;
  for (const threshold of thresholds) {
    const reported = known.filter(({ last }) => last > threshold);
    const right = reported.filter(({ isLeak }) => isLeak).length;
    if (right > 0 && right / reported.length >= least) {
      const hours = leaks
        .flatMap(({ after }) => after.find(([, figure]) => figure > threshold)?.[0] ?? [])
        .sort((a, b) => a - b);
      return {
        threshold,
        precision: right / reported.length,
        recall: right / leaks.length,
        hoursToDetection: hours[hours.length >> 1] ?? null,
      };
    }
  }
  return null;
}

/** What was known at a moment. @param {Process[]} processes @param {number} timeMs @returns {Process[]} */
function until(processes, timeMs) {
  return processes
    .filter(({ startedMs }) => startedMs < timeMs)
    .map((each) => ({
      ...each,
      endedMs: each.endedMs !== null && each.endedMs <= timeMs ? each.endedMs : null,
      rss: cut(each.rss, timeMs),
      requests: each.requests === null ? null : cut(each.requests, timeMs),
      sites: each.sites
        .map(({ stack, live }) => ({ stack, live: cut(live, timeMs) }))
        .filter(({ live }) => live.times.length > 0),
    }));
}

/** @param {import("./folder.mjs").Readings} readings @param {number} timeMs */
function cut({ times, values }, timeMs) {
  if ((times.at(-1) ?? 0) <= timeMs) {
    return { times, values };
  }
  const end = times.findIndex((time) => time > timeMs);
  return { times: times.slice(0, end), values: values.slice(0, end) };
}

/** @param {Scored[]} rows */
export function totalsOf(rows) {
  const share = (/** @type {(boolean | null)[]} */ all) => {
    const known = all.filter((each) => each !== null);
    return known.length === 0 ? null : known.filter(Boolean).length / known.length;
  };
  const leaks = rows.filter(({ isLeak }) => isLeak);
  const hours = leaks
    .flatMap((row) => (row.hours === null ? [] : [row.hours]))
    .sort((a, b) => a - b);
  return {
    services: rows.length,
    leaks: leaks.length,
    precision: share(rows.filter(({ reported }) => reported).map(({ isLeak }) => isLeak)),
    recall: share(leaks.map(({ reported }) => reported)),
    versionRight: share(rows.map(({ versionRight }) => versionRight)),
    culpritRight: share(rows.map(({ culpritRight }) => culpritRight)),
    instancesRight: share(rows.map(({ instancesRight }) => instancesRight)),
    innocentDeploys: rows.filter(({ innocentDeploy }) => innocentDeploy).length,
    falseRegressions: rows.filter((row) => row.innocentDeploy && row.falseRegression).length,
    falseAtAnyTime: rows.filter(({ everFalse }) => everFalse).length,
    /** Median over the leaks that were detected. */
    hoursToDetection: hours[hours.length >> 1] ?? null,
    recallByRate: RATES.map(([least, most]) => {
      const own = leaks.filter(
        ({ limitSharePerDay: rate }) => rate !== null && rate >= least && rate < most,
      );
      const detected = own
        .flatMap((row) => (row.hours === null ? [] : [row.hours]))
        .sort((a, b) => a - b);
      return {
        leastLimitSharePerDay: least,
        mostLimitSharePerDay: most,
        leaks: own.length,
        recall: share(own.map(({ reported }) => reported)),
        hoursToDetection: detected[detected.length >> 1] ?? null,
      };
    }),
  };
}

/** Shares of the limit a day. */
const RATES = /** @type {const} */ ([
  [0, 0.01],
  [0.01, 0.03],
  [0.03, 0.1],
  [0.1, 0.3],
  [0.3, 100],
]);
