/** What the ledgers of a window say of a part. They are few: whether there is growth, RSS says; they say of
 * what. */
import type { LedgerPartName } from "../model/ledger.js";
import { ledgerMetric } from "../model/series.js";
import type { Bytes, Millis } from "../model/units.js";
import { afterFirstThird } from "./growth.js";
import type { ProcessObservation } from "./observations.js";

const FEWEST_LEDGERS = 3;

export interface PartGrowth {
  readonly rise: Bytes;
  readonly spanMs: Millis;
  readonly level: Bytes;
}

/** From the first to the last ledger after the first third; null where there are too few. */
export function partGrowth(process: ProcessObservation, part: LedgerPartName): PartGrowth | null {
  const { times, values } = afterFirstThird(process.readings(ledgerMetric(part)));
  const level = values.at(-1) ?? 0;
  const spanMs = (times.at(-1) ?? 0) - (times[0] ?? 0);
  return values.length < FEWEST_LEDGERS || spanMs <= 0
    ? null
    : { rise: level - (values[0] as number), spanMs, level };
}

/** Rise of several parts together; null where any is not known. */
export function riseOf(
  process: ProcessObservation,
  parts: readonly LedgerPartName[],
): Bytes | null {
  const grown = parts.map((part) => partGrowth(process, part));
  return grown.every((one) => one !== null) ? grown.reduce((sum, one) => sum + one.rise, 0) : null;
}
