/** What the ledgers of a window say of a part. They are few: whether there is growth, RSS says; they say of
 * what. */
import type { LedgerPartName } from "../model/ledger.js";
import { ledgerMetric } from "../model/series.js";
import type { Bytes, Millis } from "../model/units.js";
import { afterFirstThird } from "./growth.js";
import type { ProcessObservation } from "./observations.js";

/** Two tell which part grew where RSS shows that something does; to contradict that takes one more. */
const FEWEST_LEDGERS = 2;
const FEWEST_TO_CONTRADICT = 3;

export interface PartGrowth {
  readonly rise: Bytes;
  readonly spanMs: Millis;
  readonly level: Bytes;
}

/** From the first to the last ledger after the first third; null where there are too few. */
export function partGrowth(
  process: ProcessObservation,
  part: LedgerPartName,
  fewest = FEWEST_LEDGERS,
): PartGrowth | null {
  const { times, values } = afterFirstThird(process.readings(ledgerMetric(part)));
  const level = values.at(-1) ?? 0;
  const spanMs = (times.at(-1) ?? 0) - (times[0] ?? 0);
  return values.length < fewest || spanMs <= 0
    ? null
    : { rise: level - (values[0] as number), spanMs, level };
}

/** Rise of several parts together; null where ledgers are too few to be held against other evidence. */
export function riseOf(
  process: ProcessObservation,
  parts: readonly LedgerPartName[],
): Bytes | null {
  const grown = parts.map((part) => partGrowth(process, part, FEWEST_TO_CONTRADICT));
  return grown.every((one) => one !== null) ? grown.reduce((sum, one) => sum + one.rise, 0) : null;
}
