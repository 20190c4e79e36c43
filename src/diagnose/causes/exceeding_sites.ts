/** Whether sites keep more than the program grows by: its other memory is freed, or not resident. */
import type { Bytes } from "../../model/base/units.js";
import type { Observations } from "../evidence/observations.js";
import { isFirm } from "../series/growth.js";
import type { SiteJudgement } from "../sites/suspects.js";

/** Sites that keep this many times the growth of the whole program need an explanation. */
const EXCEEDS = 1.1;
/** 95 %: less may be the sampler's error. */
const ERRORS = 2;

export function sitesExceed({ suspects, total, windowMs }: Observations): boolean {
  const kept = suspects.reduce((sum, { slope }) => sum + slope, 0);
  // Growth that began during the window is faster at the end.
  const largest = Math.max(total.slope, total.late.slope);
  const isBeyondError = (kept - largest) * windowMs > ERRORS * errorOf(suspects);
  return isFirm(total) && kept > EXCEEDS * largest && isBeyondError;
}

/** Of the live bytes of all suspects together. */
function errorOf(suspects: readonly SiteJudgement[]): Bytes {
  return Math.sqrt(suspects.reduce((sum, { site }) => sum + site.standardErrorBytes ** 2, 0));
}
