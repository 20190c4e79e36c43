import type { VerdictKind } from "../../model/diagnosis_document.js";
import type { LedgerPartName } from "../../model/ledger.js";
import { ledgerMetric } from "../../model/series.js";
import type { Bytes, Millis } from "../../model/units.js";
import { afterFirstThird } from "../growth.js";
import { SMALLEST_RISE_BYTES } from "../observations.js";
import type { Readings } from "../readings.js";
import { type Rule, silent } from "../rule.js";
import { bytesText, percent, rateText } from "../words.js";

/** Which part speaks for what, where no site is known. */
const MEANING: Partial<Record<LedgerPartName, VerdictKind>> = {
  "python.used": "python-leak",
  "python.free": "allocator-retention",
  "malloc.used": "native-leak",
  "malloc.free": "allocator-retention",
  "file.mapped": "file-growth",
  shm: "shm-growth",
};
const PARTS = Object.keys(MEANING) as LedgerPartName[];
/** Of all that grows in the ledger, what its first part must have. */
const MOST_OF_GROWTH = 0.5;
const FEWEST_LEDGERS = 3;

/** RSS grows, and the ledger tells which part of it. Sites know more, where there are any. */
export const ledgerParts: Rule = {
  name: "ledger-parts",
  judge({ target, suspects }) {
    const parts = PARTS.map((part) => ({
      part,
      ...riseOf(afterFirstThird(target.readings(ledgerMetric(part)))),
    })).filter(({ spanMs }) => spanMs > 0);
    if (parts.length === 0) {
      return null;
    }
    const all = parts.reduce((sum, { rise }) => sum + Math.max(0, rise), 0);
    const [first] = parts.sort((a, b) => b.rise - a.rise);
    if (
      !first ||
      !target.grows("rssBytes") ||
      first.rise < Math.max(MOST_OF_GROWTH * all, SMALLEST_RISE_BYTES / 2)
    ) {
      return silent("No part of the ledger grows on its own.");
    }
    const detail = `${first.part} grows by ${rateText(first.rise / first.spanMs)}, to ${bytesText(first.level)}: ${percent(first.rise / all)} of what grows.`;
    return suspects.length > 0
      ? silent(detail)
      : {
          says: "leak",
          kind: MEANING[first.part] ?? null,
          // Buffers of arrays are malloc's as well: without their holders that is not told apart.
          weight: first.part === "malloc.used" ? 0.6 : 0.7,
          detail,
        };
  },
};

/** Ledgers are few: whether there is growth, RSS says; they say of what. */
function riseOf({ times, values }: Readings): { rise: number; spanMs: Millis; level: Bytes } {
  const level = values.at(-1) ?? 0;
  return {
    rise: level - (values[0] ?? 0),
    spanMs: values.length < FEWEST_LEDGERS ? 0 : (times.at(-1) as number) - (times[0] as number),
    level,
  };
}
