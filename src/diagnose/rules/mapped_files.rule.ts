import { formatBytesBriefly, formatSlopeBriefly } from "../../model/base/numbers.js";
import type { Observations, ProcessObservation } from "../evidence/observations.js";
import { keeps, type SiteCourse, type SiteJudgement } from "../sites/suspects.js";
import { type Rule, silent } from "./rule.js";

/** Of the resident pages' growth, what the address space must grow by: else one mapping is being read. */
const LEAST_NEW_MAPPINGS = 0.4;

/** Of a mapping: what is kept, with what is added to one, and what is made anew, larger each time. */
const GROWING: ReadonlySet<SiteCourse> = new Set([
  "keeps",
  "accumulates",
  "hints",
  "swells",
  "doubles",
]);

/** Who maps and does not unmap. Where no mapping was seen to be kept: code of the program's own that keeps
 * something, however little, for an object for a mapping is small. */
export function mappers({ mappings, sites }: Observations): SiteJudgement[] {
  const keep = mappings.filter(({ course }) => GROWING.has(course));
  return keep.length > 0
    ? keep
    : sites.filter(
        ({ site, course, slope }) => site.own && slope > 0 && (keeps(course) || course === "small"),
      );
}

/** Whether mappings of files are added; else those that were there before are being read. */
export function mapsMore(process: ProcessObservation): boolean {
  const resident = process.growth("fileRssBytes");
  return process.growth("vmsBytes").rise >= LEAST_NEW_MAPPINGS * resident.rise;
}

/** Files are mapped and never unmapped. Pages of one large mapping that are read one after the other are
 * resident, too, and no leak: the address space tells. */
export const mappedFiles: Rule = {
  name: "mapped-files",
  judge(observations) {
    const { processes } = observations;
    const grown = processes.filter((process) => process.grows("fileRssBytes"));
    if (grown.length === 0) {
      return silent("Pages of mapped files do not grow.");
    }
    const [worst] = grown.sort(
      (a, b) => b.growth("fileRssBytes").rise - a.growth("fileRssBytes").rise,
    );
    const process = worst as ProcessObservation;
    const growth = process.growth("fileRssBytes");
    if (!mapsMore(process)) {
      return {
        says: "no leak",
        kind: "warm-up",
        weight: 0.7,
        namesCause: true,
        sentence: `Files that are mapped already are being read: ${formatBytesBriefly(growth.level)} of them are resident, ${formatSlopeBriefly(growth.slope)} more; that ends with the files, and the kernel drops such pages when memory gets short.`,
        detail: `Pages of mapped files become resident (${formatSlopeBriefly(growth.slope)}) in mappings that were there before: the kernel drops them when memory gets short.`,
      };
    }
    return {
      says: "leak",
      kind: "file-growth",
      // Each mapping may hold a descriptor, too: the pages are what costs.
      weight: 0.98,
      detail: `Mapped files grow by ${formatSlopeBriefly(growth.slope)}, to ${formatBytesBriefly(growth.level)} resident now, and their mappings with them.`,
      growth,
      suspects: mappers(observations),
    };
  },
};
