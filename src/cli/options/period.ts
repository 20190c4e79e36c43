import { InvalidArgumentError } from "commander";
import type { Bytes } from "../../model/base/units.js";
import { parseBytes } from "./options.js";

export const PERIOD_HELP =
  "mean bytes between samples (default 64KiB); 1 records every allocation until the agent's memory is full";

/** The agent takes no larger one (agent/src/lifecycle/options.c). */
const LARGEST_PERIOD: Bytes = 2 ** 40;

/** Parses "16K" as a sampling period; throws the error that commander prints. */
export function parsePeriod(text: string): Bytes {
  const period = parseBytes(text);
  if (period < 1 || period > LARGEST_PERIOD) {
    throw new InvalidArgumentError("a size from 1 to 1TiB, such as 16K");
  }
  return period;
}

/** A warning if the period slows the program down; otherwise empty. */
export function periodRemarks(period: Bytes | undefined): string[] {
  return period === 1
    ? ["--period 1 records every allocation: the program may run several times slower"]
    : [];
}
