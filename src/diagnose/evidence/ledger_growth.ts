/**
 * Growth of a ledger part over a window. Ledgers are few: RSS decides whether there is growth, and the ledgers
 * show what grows.
 */

import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import { LEDGER_PARTS, type LedgerPartName } from "../../model/profile/ledger.js";
import { ledgerMetric } from "../../model/profile/series.js";
import { afterFirstThird } from "../series/growth.js";
import type { ProcessObservation } from "./observations.js";

/** Two ledgers suffice to show which part grew if RSS grows; contradicting that takes one more. */
const FEWEST_LEDGERS = 2;
const FEWEST_TO_CONTRADICT = 3;

export interface PartGrowth {
  readonly rise: Bytes;
  readonly fromMs: TimeMs;
  readonly toMs: TimeMs;
  readonly spanMs: Millis;
  readonly level: Bytes;
  /** Share of the time over which RSS is judged that lies between those two ledgers. */
  readonly covered: number;
}

/** From the first to the last ledger after the first third; null if there are too few. */
export function partGrowth(
  process: ProcessObservation,
  part: LedgerPartName,
  fewest = FEWEST_LEDGERS,
): PartGrowth | null {
  const { times, values } = afterFirstThird(process.readings(ledgerMetric(part)));
  const level = values.at(-1) ?? 0;
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const spanMs = last - first;
  if (values.length < fewest || spanMs <= 0) {
    return null;
  }
  const judged = afterFirstThird(process.readings("rssBytes")).times;
  const [from = 0, to = 0] = [judged[0], judged.at(-1)];
  const covered = Math.max(0, last - Math.max(first, from)) / Math.max(1, to - from);
  return { rise: level - (values[0] as number), fromMs: first, toMs: last, spanMs, level, covered };
}

/**
 * Share of several parts in the growth over the newest ledgers, for comparison with other evidence if a short
 * window has too few ledgers after its first third. null if there are too few in total, or nothing grew.
 */
export function shareOfNewest(
  process: ProcessObservation,
  parts: readonly LedgerPartName[],
): number | null {
  const rises = LEDGER_PARTS.flatMap((part) => {
    const values = process.readings(ledgerMetric(part)).values.slice(-FEWEST_TO_CONTRADICT);
    const rise = (values.at(-1) ?? 0) - (values[0] ?? 0);
    return values.length < FEWEST_TO_CONTRADICT || rise <= 0 ? [] : [{ part, rise }];
  });
  const all = rises.reduce((sum, { rise }) => sum + rise, 0);
  const own = rises.reduce((sum, { part, rise }) => sum + (parts.includes(part) ? rise : 0), 0);
  return all > 0 ? own / all : null;
}

/** Combined rise of several parts; null if there are too few ledgers to contradict other evidence. */
export function riseOf(
  process: ProcessObservation,
  parts: readonly LedgerPartName[],
): Bytes | null {
  const grown = parts.map((part) => partGrowth(process, part, FEWEST_TO_CONTRADICT));
  return grown.every((one) => one !== null) ? grown.reduce((sum, one) => sum + one.rise, 0) : null;
}
