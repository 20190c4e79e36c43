/** One line of `tidemark doctor`. */
import type { DoctorCheckJson } from "../../../model/documents/doctor_document.js";
import { TidemarkError } from "../../../model/errors/errors.js";

export type Area = DoctorCheckJson["area"];

export function works(area: Area, check: string, found: string): DoctorCheckJson {
  return { area, check, state: "ok", found, effect: "", remedy: "" };
}

/** @param shortfall what does not work, and how to enable it */
export function limited(
  area: Area,
  check: string,
  found: string,
  shortfall: { readonly effect: string; readonly remedy: string },
): DoctorCheckJson {
  return { area, check, state: "limited", found, ...shortfall };
}

/** @param shortfall what does not work, and how to enable it */
export function missing(
  area: Area,
  check: string,
  found: string,
  shortfall: { readonly effect: string; readonly remedy: string },
): DoctorCheckJson {
  return { area, check, state: "missing", found, ...shortfall };
}

/** The text of an error, split into a check's message and its remedy. */
export function wordsOf(error: unknown): { readonly found: string; readonly remedy: string } {
  return error instanceof TidemarkError
    ? { found: [error.what, error.why].filter(Boolean).join("; "), remedy: error.next }
    : { found: error instanceof Error ? error.message : String(error), remedy: "" };
}
