/**
 * Labelled fleets of recordings, stretched from half a minute to days. Every version of a service runs a look-alike of the
 * leak bench; from the last deploy on, what another program did is added: a leak, or another look-alike.
 *
 *   RSS at an age = base + a x look-alike(age / its stretch) + b x added(age / its stretch) + load (time) + noise
 */
import { valueAt } from "./courses.mjs";
import { trafficOf, versionsOf } from "./deploys.mjs";
import { Random } from "./random.mjs";

/** @typedef {import("./folder.mjs").Fleet} Fleet */
/** @typedef {import("./folder.mjs").Process} Process */
/** @typedef {import("./folder.mjs").Label} Label */
/** @typedef {import("./courses.mjs").Course} Course */

const MIB = 2 ** 20;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ORIGIN = Date.UTC(2026, 2, 18);
/** What the last version adds. */
const ADDED = /** @type {const} */ (["leak", "leak", "look-alike", "nothing"]);
const SERVICES = 12;

/** @param {number} seed @param {Course[]} courses @returns {Fleet} */
export function stretchedFleet(seed, courses, services = SERVICES) {
  const random = new Random(seed * 6007 + 3);
  const endMs = ORIGIN + Math.round(random.between(0, 14 * DAY));
  /** @type {Fleet} */
  const fleet = { name: `recorded-${seed}`, endMs, processes: [], labels: {} };
  for (let at = 0; at < services; at++) {
    const kind = /** @type {"leak" | "look-alike" | "nothing"} */ (ADDED[at % ADDED.length]);
    const about = { service: `recorded-${kind}-${at}`, kind, endMs, courses };
    const { processes, label } = serviceOf(about, new Random(seed * 92821 + at * 53 + 11));
    fleet.processes.push(...processes);
    fleet.labels[about.service] = label;
  }
  return fleet;
}

/**
 * @param {{service: string, kind: "leak" | "look-alike" | "nothing", endMs: number, courses: Course[]}} about
 * @param {Random} random @returns {{processes: Process[], label: Label}}
 */
function serviceOf({ service, kind, endMs, courses }, random) {
  const limit = random.magnitude(128, 16_384) * MIB;
  const calm = courses.filter(({ isLeak }) => !isLeak);
  const body = random.pick(calm);
  const perDay = limit * random.magnitude(0.01, 1);
  const lengthMs = random.between(8, 13) * DAY;
  const ranMs = Math.min(
    lengthMs - DAY,
    Math.max(random.magnitude(36 * HOUR, 6 * DAY), (0.03 * limit * DAY) / perDay),
  );
  const deployMs = endMs - (kind === "leak" ? ranMs : random.magnitude(2 * HOUR, 6 * DAY));
  const added =
    kind === "leak"
      ? leaking(random.pick(courses.filter(({ isLeak }) => isLeak)), ranMs, perDay)
      : kind === "look-alike"
        ? levelling(random.pick(calm.filter((one) => one !== body)), limit, random)
        : null;
  const plan = {
    ...{ service, limit, endMs, added },
    body: levelling(body, limit, random),
    versions: versionsOf(random, endMs - lengthMs, deployMs),
    traffic: trafficOf(random, "recorded", deployMs),
    base: limit * random.between(0.12, 0.35),
    load: random.chance(0.6) ? limit * random.between(0, 0.06) : 0,
    noise: random.magnitude(0.0005, 0.01),
    pollMs: random.pick([60_000, 120_000, 300_000]),
    agentShare: random.pick([0, 0.3, 1]),
    knowsRequests: random.chance(0.5),
    crashesPerDay: random.chance(0.3) ? random.magnitude(0.05, 1) : 0,
  };
  const instances = random.whole(1, 12);
  const processes = Array.from({ length: instances }, (_, instance) =>
    livesOf(plan, instance, new Random(random.whole(0, 2 ** 31))),
  ).flat();
  return { processes, label: labelOf(kind, plan, perDay, deployMs, processes) };
}

/** @typedef {{course: Course, stretch: number, scale: number}} Stretched */
/** @typedef {any} Plan the figures of a service, from serviceOf */

/** @param {Course} course @param {number} ranMs @param {number} perDay @returns {Stretched} */
function leaking(course, ranMs, perDay) {
  const grown = course.rss.values.at(-1) ?? 0;
  return { course, stretch: ranMs / course.lengthMs, scale: (perDay * ranMs) / DAY / grown };
}

/** @param {Course} course @param {number} limit @param {Random} random @returns {Stretched} */
function levelling(course, limit, random) {
  const range = Math.max(...course.rss.values) - Math.min(...course.rss.values);
  return {
    course,
    stretch: random.magnitude(HOUR, 20 * HOUR) / course.lengthMs,
    scale: (limit * random.between(0.01, 0.1)) / Math.max(MIB, range),
  };
}

/**
 * What a diagnosis of the process finds of the lines that it has.
 * @param {Stretched[]} parts @param {Process["sites"]} sites
 */
function holdersOf(parts, sites) {
  const functions = new Set(sites.flatMap(({ stack }) => stack.map((frame) => frame.function)));
  return parts
    .flatMap(({ course }) => course.holders)
    .filter(({ line }) => functions.has(line.function));
}

/** @param {Plan} plan @param {number} instance @param {Random} random @returns {Process[]} */
function livesOf(plan, instance, random) {
  const hasAgent = random.unit() < plan.agentShare || (plan.agentShare > 0 && instance === 0);
  const rolloutMs = random.between(0, HOUR / 2);
  /** @type {Process[]} */
  const lives = [];
  plan.versions.forEach((/** @type {any} */ release, /** @type {number} */ at) => {
    const next = plan.versions[at + 1]?.timeMs;
    const until = next === undefined ? plan.endMs : next + rolloutMs;
    let from = release.timeMs + rolloutMs;
    while (from < until) {
      const days = plan.crashesPerDay > 0 ? -Math.log(1 - random.unit()) / plan.crashesPerDay : 99;
      const parts = [plan.body, ...(next === undefined && plan.added ? [plan.added] : [])];
      const ends = Math.min(until, from + days * DAY);
      const life = lifeOf(plan, { parts, release, from, until: ends, hasAgent }, random);
      lives.push({
        ...{ process: `${plan.service}-${instance}/${lives.length}`, service: plan.service },
        ...{ version: release.version, instance: `${plan.service}-${instance}` },
        startedMs: Math.round(from),
        endedMs: life.untilMs < plan.endMs ? Math.round(life.untilMs) : null,
        limitBytes: Math.round(plan.limit),
        ...{ rss: life.rss, requests: plan.knowsRequests ? life.requests : null },
        ...{ sites: life.sites, kind: null, holders: holdersOf(parts, life.sites) },
      });
      from = life.untilMs + random.between(5_000, 120_000);
    }
  });
  return lives;
}

/**
 * @param {Plan} plan
 * @param {{parts: Stretched[], release: {base: number}, from: number, until: number, hasAgent: boolean}} about
 * @param {Random} random
 */
function lifeOf(plan, { parts, release, from, until, hasAgent }, random) {
  const none = () => ({
    times: /** @type {number[]} */ ([]),
    values: /** @type {number[]} */ ([]),
  });
  const [rss, requests] = [none(), none()];
  const sites = (hasAgent ? parts : []).flatMap((part) =>
    part.course.sites.map(({ stack, live }) => ({ part, recorded: live, stack, live: none() })),
  );
  const base = plan.base * release.base * random.between(0.98, 1.02);
  let [wander, nextSites] = [0, from + 300_000];
  for (let time = from + random.between(0, plan.pollMs); time < until; time += plan.pollMs) {
    const age = time - from;
    const at = (/** @type {Stretched} */ { course, stretch, scale }, readings = course.rss) =>
      scale * valueAt(readings, age / stretch, course.isLeak);
    const rate = plan.traffic(time);
    wander = 0.9 * wander + plan.noise * base * 0.44 * random.normal();
    const held = parts.reduce((sum, part) => sum + at(part), 0);
    const bytes = base + held + (plan.load * rate) / (2 * plan.traffic(from)) + wander;
    if (bytes >= plan.limit) {
      return { untilMs: time, rss, requests, sites: seen() };
    }
    rss.times.push(Math.round(time));
    rss.values.push(Math.round(Math.max(MIB, bytes)));
    requests.times.push(Math.round(time));
    requests.values.push(rate);
    if (time >= nextSites) {
      nextSites = time + (age < 6 * HOUR ? 0.25 : 2) * HOUR;
      for (const { part, recorded, live } of sites) {
        live.times.push(Math.round(time));
        live.values.push(Math.max(0, at(part, recorded) * (1 + 0.03 * random.normal())));
      }
    }
  }
  return { untilMs: until, rss, requests, sites: seen() };

  function seen() {
    return sites
      .filter(({ live }) => live.values.some((value) => value > 0))
      .map(({ stack, live }) => ({ stack, live }));
  }
}

/**
 * @param {"leak" | "look-alike" | "nothing"} kind @param {Plan} plan @param {number} perDay @param {number} deployMs
 * @param {Process[]} processes @returns {Label}
 */
function labelOf(kind, plan, perDay, deployMs, processes) {
  const { added, versions, limit } = plan;
  const cause = added === null ? "recorded" : `recorded: ${added.course.name}`;
  const { version } = versions.at(-1);
  if (kind !== "leak") {
    return { leak: false, cause, ...(kind === "look-alike" ? { innocentDeploy: true } : {}) };
  }
  const watched = processes.some((each) => each.version === version && each.sites.length > 0);
  return {
    ...{ leak: true, cause, version, startMs: Math.round(deployMs) },
    ...{ bytesPerDay: Math.round(perDay), limitBytes: Math.round(limit) },
    ...(watched
      ? { culprit: { file: `${added.course.name}.py`, functions: added.course.functions } }
      : {}),
  };
}
