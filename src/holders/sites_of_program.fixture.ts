/** The sites of a test program, which prints for each name the addresses of objects that were allocated there. */
import type { LookupSite } from "./lookup_request.js";

export function sitesOfProgram(
  said: Readonly<Record<string, unknown>>,
  python = true,
): LookupSite[] {
  return Object.entries(said).map(([site, addresses]) => ({
    ...{ site, python, swelling: null },
    addresses: addresses as number[],
  }));
}
