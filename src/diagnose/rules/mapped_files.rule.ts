import { formatBytesBriefly, formatSlopeBriefly } from "../../model/base/numbers.js";
import type { Observations, ProcessObservation } from "../evidence/observations.js";
import { keeps, type SiteCourse, type SiteJudgement } from "../sites/suspects.js";
import { type Rule, silent } from "./rule.js";

/** The address space must grow by this share of the resident growth; otherwise an existing mapping is being read. */
const LEAST_NEW_MAPPINGS = 0.4;

/** Courses of a growing mapping: kept, extended, or replaced by a larger one each time. */
const GROWING: ReadonlySet<SiteCourse> = new Set([
  "keeps",
  "accumulates",
  "hints",
  "swells",
  "doubles",
]);

/**
 * Sites that map memory and do not unmap it. If no kept mapping was seen: the program's own sites that keep
 * anything, since the Python object of a mapping is small.
 */
export function mappers({ mappings, sites }: Observations): SiteJudgement[] {
  const keep = mappings.filter(({ course }) => GROWING.has(course));
  return keep.length > 0
    ? keep
    : sites.filter(
        ({ site, course, slope }) => site.own && slope > 0 && (keeps(course) || course === "small"),
      );
}

/** Whether file mappings are added; otherwise existing ones are being read. */
export function mapsMore(process: ProcessObservation): boolean {
  const resident = process.growth("fileRssBytes");
  return process.growth("vmsBytes").rise >= LEAST_NEW_MAPPINGS * resident.rise;
}

/**
 * Files are mapped and never unmapped. Reading through one large mapping also makes its pages resident, but is
 * not a leak; the address space does not grow.
 */
export const mappedFiles: Rule = {
  name: "mapped-files",
  judge(observations) {
    const { processes } = observations;
    const grown = processes.filter((process) => process.grows("fileRssBytes"));
    if (grown.length === 0) {
      const known = processes.some((process) => process.readings("fileRssBytes").values.length > 0);
      return known ? silent("Resident pages of mapped files do not grow.") : null;
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
        sentence: `Files that are already mapped are being read: ${formatBytesBriefly(growth.level)} of them are resident, growing by ${formatSlopeBriefly(growth.slope)}. Growth stops at the end of the files, and the kernel drops these pages when memory is short.`,
        detail: `Pages of mapped files become resident (${formatSlopeBriefly(growth.slope)}) in existing mappings: the kernel drops them when memory is short.`,
      };
    }
    return {
      says: "leak",
      kind: "file-growth",
      // Each mapping may also hold a descriptor, but the pages use the memory.
      weight: 0.98,
      detail: `Mapped files grow by ${formatSlopeBriefly(growth.slope)}, to ${formatBytesBriefly(growth.level)} resident now, and so does the number of mappings.`,
      growth,
      suspects: mappers(observations),
    };
  },
};
