import { formatBytesBriefly, formatExactCount } from "../../model/base/numbers.js";
import type { AdviceJson } from "../../model/documents/diagnosis_document.js";
import type { Observations } from "../evidence/observations.js";
import { headlineOf } from "../sites/headline_frame.js";
import { frameText } from "../wording/words.js";
import { type Finding, type Rule, silent } from "./rule.js";

/** Smallest amount that is reported, in bytes and as a share of private memory. */
const SMALLEST_BYTES = 10_000_000;
const LEAST_SHARE = 0.2;
const FEWEST_OBJECTS = 200_000;
/**
 * Bytes per object at a site: 24 for a float, 28 for an int, plus 8 for its slot in a list. No other object
 * that is common in hundreds of thousands is that small (a str takes 50, a tuple of two 56).
 */
const LEAST_MEAN = 23.5;
const MOST_MEAN = 37;
const ARRAY_BYTES = 8;
const BOXED = new Set(["float", "int"]);

/** Numbers stored as separate objects, which an array would store as plain values. Not a leak, but easy to improve. */
export const boxedNumbers: Rule = {
  name: "boxed-numbers",
  judge(observations) {
    const found = observations.evidence.sites ? bySite(observations) : byCensus(observations);
    const level = observations.target.growth("anonRssBytes").level;
    if (!found || found.bytes < Math.max(SMALLEST_BYTES, LEAST_SHARE * level)) {
      return null;
    }
    const { where, what, bytes, objects } = found;
    const [now, packed] = [bytes, objects * ARRAY_BYTES].map(formatBytesBriefly);
    const advice: AdviceJson = {
      id: "TM-A080",
      text: `Store ${what} in an array (array.array, NumPy, a tensor): as separate objects they take ${now}, in an array ${packed}.`,
    };
    const finding: Finding = silent(
      `${where}: ${formatExactCount(objects)} numbers stored as separate objects take ${now}; in an array they would take ${packed}.`,
    );
    return { ...finding, beside: [advice] };
  },
};

interface Boxed {
  readonly where: string;
  /** As the object of a sentence. */
  readonly what: string;
  readonly bytes: number;
  readonly objects: number;
}

function bySite({ sites, evidence }: Observations): Boxed | undefined {
  return sites
    .filter(({ site }) => site.domain === "python" && site.pid === evidence.target.pid)
    .map(({ site }) => ({
      where: frameText(headlineOf(site)),
      what: `the numbers that ${frameText(headlineOf(site))} creates`,
      bytes: site.liveBytes.at(-1) ?? 0,
      objects: site.liveObjects,
    }))
    .filter(({ bytes, objects }) => {
      const mean = bytes / objects;
      return objects >= FEWEST_OBJECTS && mean >= LEAST_MEAN && mean <= MOST_MEAN;
    })
    .sort((a, b) => b.bytes - a.bytes)[0];
}

function byCensus({ evidence }: Observations): Boxed | undefined {
  return evidence.census?.types
    .filter(({ type }) => BOXED.has(type))
    .map(({ type, bytes, objects }) => ({
      where: `${type} objects`,
      what: `the ${type} objects`,
      bytes: bytes.at(-1) ?? 0,
      objects: objects.at(-1) ?? 0,
    }))
    .filter(({ objects }) => objects >= FEWEST_OBJECTS)
    .sort((a, b) => b.bytes - a.bytes)[0];
}
