/**
 * What answers for a service at a moment: Tidemark, and three simple rules for comparison. Each sees only what was known
 * at that moment and returns whether it reports a leak, since which version, and at which line.
 *
 * @typedef {{leak: boolean, version: string | null, isRegression: boolean, culprit: {file: string, function: string} | null,
 *   instances: string[] | null, shown: string, figure?: number}} Answer instances: those that leak alone, or null: the rule
 *   does not say. figure: what a simple rule compares with its threshold
 * @typedef {(service: string, processes: import("./folder.mjs").Process[], endMs: number, services: number) => Answer} Rule
 */
import { diagnoseService, processesForSites } from "../dist/diagnose/index.js";

const HOUR = 3_600_000;
const MIB = 2 ** 20;
const WINDOW = 14 * 24 * HOUR;

/** @type {Rule} */
function tidemark(service, processes, endMs, services) {
  const window = { startMs: endMs - WINDOW, endMs };
  const document = diagnosed({ service, window, processes }, services);
  const { verdict, change, suspects, oddInstances, leak: found } = document;
  const odd = oddInstances.filter(({ version }) => version === found?.version);
  const leak = !["steady", "warm-up", "cache-plateau", "insufficient-evidence"].includes(
    verdict.kind,
  );
  const line = suspects[0]?.line;
  return {
    leak,
    version: change?.kind === "growth" ? change.version : null,
    isRegression: change?.kind === "growth",
    culprit: line === undefined ? null : { file: line.file, function: line.function },
    instances: [...new Set(odd.map(({ instance }) => instance))],
    shown: verdict.summary,
  };
}

/**
 * As the server does: RSS first, then again with the sites that this diagnosis asks for.
 * @param {{service: string, window: {startMs: number, endMs: number}, processes: import("./folder.mjs").Process[]}} evidence
 * @param {number} services
 */
function diagnosed({ processes, ...about }, services) {
  const bare = processes.map((each) => ({ ...each, sites: [] }));
  const first = diagnoseService({ ...about, processes: bare }, services);
  const chosen = new Set(processesForSites({ ...about, processes: bare }, first));
  const shown = processes.map((each) => (chosen.has(each.process) ? each : { ...each, sites: [] }));
  const hasSites = shown.some(({ sites }) => sites.length > 0);
  return hasSites ? diagnoseService({ ...about, processes: shown }, services) : first;
}

/** An instance above 90 % of its limit. @type {Rule} */
function staticThreshold(_service, processes, endMs) {
  const shares = processes
    .filter(({ endedMs, limitBytes }) => (endedMs ?? endMs) >= endMs && limitBytes > 0)
    .map(({ rss, limitBytes }) => (rss.values.at(-1) ?? 0) / limitBytes);
  return said(Math.max(0, ...shares), 0.9);
}

/** A least-squares line through the last day of each instance's RSS: mean slope above 5 % of the limit a day. @type {Rule} */
function regressionLine(_service, processes, endMs) {
  const slopes = processes
    .filter(({ endedMs }) => (endedMs ?? endMs) >= endMs)
    .flatMap(({ rss, limitBytes }) => {
      const slope = slopeIn(rss, endMs - 24 * HOUR);
      return slope === null || limitBytes === 0 ? [] : [(slope * 24 * HOUR) / limitBytes];
    });
  return said(slopes.reduce((sum, slope) => sum + slope, 0) / Math.max(1, slopes.length), 0.05);
}

/**
 * Coroot's inspection "Memory leak" (release 0.11.0 and auditor/memory.go): the growth in an hour of a regression line
 * through each container's RSS in the window, summed over containers, is above 10 MB. Its default window is one hour.
 * @type {Rule}
 */
function coroot(_service, processes, endMs) {
  let grown = 0;
  for (const { rss, endedMs } of processes) {
    if ((endedMs ?? endMs) >= endMs - HOUR) {
      grown += ((slopeIn(rss, endMs - HOUR) ?? 0) * HOUR) / MIB;
    }
  }
  return said(grown, 10);
}

/** @type {ReadonlyMap<string, Rule>} */
export const RULES = new Map([
  ["tidemark", tidemark],
  ["static threshold", staticThreshold],
  ["regression line", regressionLine],
  ["coroot", coroot],
]);

/** @param {number} figure @param {number} threshold @returns {Answer} */
function said(figure, threshold) {
  const leak = figure > threshold;
  return {
    leak,
    version: null,
    isRegression: leak,
    culprit: null,
    instances: null,
    shown: "",
    figure,
  };
}

/** @param {import("./folder.mjs").Readings} readings @param {number} fromMs @returns {number | null} */
function slopeIn({ times, values }, fromMs) {
  const from = times.findIndex((time) => time >= fromMs);
  const n = times.length - from;
  if (from < 0 || n < 3) {
    return null;
  }
  const rows = times.slice(from).map((time, at) => [time - fromMs, values[from + at] ?? 0]);
  const [meanX, meanY] = [0, 1].map(
    (column) => rows.reduce((sum, row) => sum + (row[column] ?? 0), 0) / n,
  );
  let [xy, xx] = [0, 0];
  for (const [x = 0, y = 0] of rows) {
    xy += (x - (meanX ?? 0)) * (y - (meanY ?? 0));
    xx += (x - (meanX ?? 0)) ** 2;
  }
  return xx > 0 ? xy / xx : null;
}
