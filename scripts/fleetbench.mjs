/**
 * `npm run fleetbench`, with the words of `usage` below: scores the fleet's diagnosis, and simple rules for comparison, on
 * labelled fleets.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { readCourses, recordMissing } from "../fleetbench/courses.mjs";
import { fleetsIn, readFleet, withoutAgents, writeFleet } from "../fleetbench/folder.mjs";
import { generateFleet, INNOCENT_DEPLOYS, SHAPE_CAUSES } from "../fleetbench/generate.mjs";
import { DEPLOY_AGES_MS } from "../fleetbench/moments.mjs";
import { atPrecision, scoreFleet, totalsOf } from "../fleetbench/score.mjs";
import { stretchedFleet } from "../fleetbench/stretch.mjs";
import { build } from "./build.mjs";
import { runAsScript, SetupError } from "./command.mjs";

const USUAL_FLEETS = 10;
const usage = `usage: npm run fleetbench -- [OPTIONS]

  --seed N       makes the fleets of the seeds from N on; default: 1
  --count N      how many; default: ${USUAL_FLEETS}
  --recordings DIR   makes them of recordings of leak-bench programs, which it writes there first if they are missing
  --fleets DIR   reads the fleets of a folder instead, in the format of docs/fleetbench.md
  --write DIR    writes the fleets that were made, in the same format
  --innocent     makes only services whose last deploy changes memory and is no regression, and also asks at nine ages of it
  --shapes       makes services of other shapes instead, such as canaries and services without a limit; asks at these ages too
  --no-agents    leaves out what agents saw, so that RSS alone decides
  --json         prints the document tidemark.fleetbench/1 instead of tables
  --misjudged    lists the services with a wrong answer: how fast and how long they leak, and what the diagnosis says

  npm run fleetbench -- --seed 7 --count 1 --write /tmp/fleets
  npm run fleetbench -- --fleets /tmp/fleets
`;

function wordsOf() {
  try {
    return parseArgs({
      options: {
        help: { type: "boolean", short: "h", default: false },
        seed: { type: "string", default: "1" },
        count: { type: "string", default: String(USUAL_FLEETS) },
        recordings: { type: "string" },
        fleets: { type: "string" },
        write: { type: "string" },
        innocent: { type: "boolean", default: false },
        shapes: { type: "boolean", default: false },
        "no-agents": { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        misjudged: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    throw new SetupError(`${/** @type {Error} */ (error).message}\n${usage}`);
  }
}

/** @param {string} text @param {string} name */
function whole(text, name) {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1) {
    throw new SetupError(`${name} needs a whole number from 1: ${text}`);
  }
  return number;
}

/** @param {{recordings?: string, innocent: boolean, shapes: boolean}} words @returns {Promise<(seed: number) => import("../fleetbench/folder.mjs").Fleet>} */
async function makerOf({ recordings, innocent, shapes }) {
  if (recordings === undefined) {
    const causes = shapes ? SHAPE_CAUSES : innocent ? INNOCENT_DEPLOYS : undefined;
    return (seed) => generateFleet(seed, { causes });
  }
  recordMissing(resolve(recordings), (line) => process.stderr.write(`${line}\n`));
  const courses = await readCourses(resolve(recordings));
  return (seed) => stretchedFleet(seed, courses);
}

async function fleetbench() {
  const words = wordsOf();
  if (words.help) {
    process.stdout.write(usage);
    return;
  }
  const [seed, count] = [whole(words.seed, "--seed"), whole(words.count, "--count")];
  const folder = words.fleets === undefined ? null : resolve(words.fleets);
  const names = folder === null ? [] : fleetsIn(folder);
  await build();
  const { RULES } = await import("../fleetbench/answers.mjs");
  const make = await makerOf(words);
  const agesMs = words.innocent || words.shapes ? DEPLOY_AGES_MS : [];
  /** @type {Map<string, import("../fleetbench/score.mjs").Scored[]>} */
  const scored = new Map([...RULES.keys()].map((name) => [name, []]));
  for (let at = 0; at < (folder === null ? count : names.length); at++) {
    const fleet =
      folder === null ? make(seed + at) : readFleet(folder, /** @type {string} */ (names[at]));
    if (words.write !== undefined) {
      writeFleet(resolve(words.write), fleet);
    }
    const judged = words["no-agents"] ? withoutAgents(fleet) : fleet;
    for (const [name, rule] of RULES) {
      scored.get(name)?.push(...scoreFleet(judged, rule, agesMs));
    }
    process.stderr.write(`${fleet.name}: ${Object.keys(fleet.labels).length} services\n`);
  }
  const [own = [], ...others] = [...scored.values()];
  const totals = totalsOf(own);
  const document = {
    schema: "tidemark.fleetbench/1",
    ...(folder === null ? { seed, count } : {}),
    fleets: own,
    totals,
    baselines: [...scored.keys()].slice(1).map((name, at) => ({
      name,
      totals: totalsOf(others[at] ?? []),
      asPrecise: atPrecision(others[at] ?? [], totals.precision),
    })),
  };
  process.stdout.write(
    words.json ? `${JSON.stringify(document, null, 1)}\n` : tables(document, words.misjudged),
  );
}

/** @param {any} document @param {boolean} misjudged */
function tables({ totals, baselines, fleets }, misjudged) {
  const percent = (/** @type {number | null} */ share) =>
    share === null ? "-" : `${(100 * share).toFixed(1)} %`;
  const hours = (/** @type {number | null} */ number) => (number === null ? "-" : `${number} h`);
  const line = (/** @type {string[]} */ cells) =>
    `${cells.map((cell, at) => (at === 0 ? cell.padEnd(18) : cell.padStart(10))).join(" ")}\n`;
  let text = line([
    "",
    "precision",
    "recall",
    "version",
    "culprit",
    "instances",
    "regress.",
    "ever false",
    "detected",
  ]);
  for (const { name, totals: of } of [{ name: "tidemark", totals }, ...baselines]) {
    text += line([
      name,
      ...[of.precision, of.recall, of.versionRight, of.culpritRight, of.instancesRight].map(
        percent,
      ),
      `${of.falseRegressions}/${of.innocentDeploys}`,
      String(of.falseAtAnyTime),
      hours(of.hoursToDetection),
    ]);
  }
  text += "\nwith the threshold that is as precise as tidemark\n";
  for (const { name, asPrecise: of } of baselines) {
    text += line([
      name,
      ...(of === null ? ["-", "-"] : [of.precision, of.recall].map(percent)),
      of === null ? "none is" : `above ${of.threshold.toPrecision(3)}`,
      hours(of?.hoursToDetection ?? null),
    ]);
  }
  text += "\nrecall by growth in shares of the limit a day\n";
  for (const {
    leastLimitSharePerDay: least,
    mostLimitSharePerDay: most,
    ...of
  } of totals.recallByRate) {
    text += line([
      `${percent(least)} to ${most > 10 ? "more" : percent(most)}`,
      `${of.leaks} leaks`,
      percent(of.recall),
      hours(of.hoursToDetection),
    ]);
  }
  if (misjudged) {
    for (const row of fleets) {
      const isWrong =
        row.reported !== row.isLeak ||
        row.everFalse ||
        row.versionRight === false ||
        row.culpritRight === false ||
        row.instancesRight === false;
      const leak =
        row.limitSharePerDay === null
          ? ""
          : ` leaks ${percent(row.limitSharePerDay)} of the limit a day for ${Math.round(row.leakedHours)} h, ${row.hasAgent ? "with" : "without"} an agent;`;
      text += isWrong
        ? `${row.fleet} ${row.service}:${leak} reported ${row.reported}, version ${row.versionRight}, culprit ${row.culpritRight}, instances ${row.instancesRight}, ever false ${row.everFalse}; ${row.answer}\n`
        : "";
    }
  }
  return text;
}

await runAsScript(import.meta, fleetbench);
