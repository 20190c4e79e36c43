import { unseenUpToBytes } from "../../model/base/interval.js";
import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatShare,
} from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type { VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { LedgerPartName } from "../../model/profile/ledger.js";
import { fillsBlocks, keptMeanwhile } from "../causes/rarely_sampled_sites.js";
import { partGrowth } from "../evidence/ledger_growth.js";
import { type Observations, SMALLEST_RISE_BYTES } from "../evidence/observations.js";
import { isFirm } from "../series/growth.js";
import { median } from "../series/trend.js";
import { headlineOf } from "../sites/headline_frame.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { frameText } from "../wording/words.js";
import { mapsMore } from "./mapped_files.rule.js";
import { type Finding, type Rule, silent } from "./rule.js";

/** Which part speaks for what, where no site is known. */
const MEANING: Partial<Record<LedgerPartName, VerdictKind>> = {
  "python.used": "python-leak",
  "python.free": "allocator-retention",
  "malloc.used": "native-leak",
  "malloc.free": "allocator-retention",
  "anon.other": "native-leak",
  "file.mapped": "file-growth",
  shm: "shm-growth",
};
const PARTS = Object.keys(MEANING) as LedgerPartName[];
/** Of all that grows in the ledger, what its first part must have. */
const MOST_OF_GROWTH = 0.5;
/** Buffers of arrays are malloc's as well, and some libraries map pools of their own: without their holders
 * that is not told apart. */
const UNSURE = new Set<LedgerPartName>(["malloc.used", "anon.other"]);

/** What is free rises whenever a heap finds its size, and less and less: of the time for which RSS is judged,
 * ledgers must show so much. */
const LEAST_COVERED_OF_FREE = 1 / 3;
/** Of what malloc's part grows by, what must be surely in no site. */
const LEAST_UNUSED = 0.5;
/** 95 %. */
const STANDARD_ERRORS = 2;

/** RSS grows, and the ledger tells which part of it. Sites know more, where there are any. */
export const ledgerParts: Rule = {
  name: "ledger-parts",
  judge(observations) {
    const { target, suspects, evidence } = observations;
    const parts = PARTS.flatMap((part) => {
      const growth = partGrowth(target, part);
      return growth ? [{ part, ...growth }] : [];
    });
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
    const detail = `${first.part} rose by ${formatBytesBriefly(first.rise)} in ${formatDurationBriefly(first.spanMs)}, to ${formatBytesBriefly(first.level)}: ${formatShare(first.rise / all)} of what grows.`;
    const kind = MEANING[first.part] ?? null;
    const isEarly =
      kind === "allocator-retention" &&
      (first.covered < LEAST_COVERED_OF_FREE || !isFirm(target.growth("rssBytes")));
    const isRead = kind === "file-growth" && !mapsMore(target);
    if (suspects.length > 0 || isEarly || isRead) {
      return silent(detail);
    }
    if (evidence.sites && first.part === "malloc.used") {
      const pools = fillsBlocks(observations, first.rise);
      if (pools.length > 0) {
        return filled(observations, detail, pools);
      }
      if (keptBySites(observations) >= LEAST_UNUSED * first.rise) {
        return silent(detail);
      }
      return tellsWithoutSites(observations, first.rise) ? touched(detail) : unseen(detail);
    }
    const weight = UNSURE.has(first.part) ? 0.6 : 0.7;
    const found = { says: "leak", kind, weight, detail } as const;
    const slope = first.rise / first.spanMs;
    const meanwhile = first.part === "anon.other" ? keptMeanwhile(observations, slope) : [];
    const [most] = meanwhile;
    return most === undefined
      ? found
      : {
          ...found,
          detail: `${detail} What ${frameText(headlineOf(most.site))} keeps meanwhile may hold it.`,
          suspects: meanwhile,
          growth: target.growth("rssBytes"),
        };
  },
};

/** What all sites kept of the window, those that no rule suspects among them. */
function keptBySites({ sites }: Observations): Bytes {
  return sites.reduce(
    (sum, { course, keptBytes }) => sum + (course === "churns" ? 0 : keptBytes),
    0,
  );
}

/** Whether the samples of all sites are enough to say that none of them asked for what grows: what private memory
 * grows by beyond them is most of it, whatever chance drew. A site without a sample is no surer than the period. */
function tellsWithoutSites({ unused, target }: Observations, rise: Bytes): boolean {
  if (unused === null) {
    return true;
  }
  const periods = target.readings("periodBytes").values;
  const unseenBytes = periods.length > 0 ? unseenUpToBytes(median(periods)) : 0;
  const error = Math.max(STANDARD_ERRORS * unused.standardErrorBytes, unseenBytes);
  return unused.keptBytes - error >= LEAST_UNUSED * rise || error < LEAST_UNUSED * rise;
}

/** Samples that are rare beside what grows (a program that allocates very much raises their period). */
function unseen(detail: string): Finding {
  return {
    ...silent(
      `${detail} Samples are too rare beside it to tell a site that keeps it: more time, or a smaller --period, would.`,
    ),
    kind: "insufficient-evidence",
    weight: 0.6,
  };
}

/** A pool of a library's own, larger each time, is filled evenly: RSS grows, and blocks are asked for seldom. */
function filled(
  { target, holderOf }: Observations,
  detail: string,
  pools: readonly SiteJudgement[],
): Finding {
  const [first] = pools as readonly [SiteJudgement];
  const isHeld = first.site.domain === "python" || holderOf(first)?.holder != null;
  return {
    says: "leak",
    kind: isHeld ? "python-leak" : "native-leak",
    weight: 0.75,
    detail: `${detail} ${frameText(headlineOf(first.site))} asks for large blocks now and then, keeps them, and they are filled.`,
    suspects: pools,
    growth: target.growth("rssBytes"),
  };
}

/** The agent sees what is asked of malloc: where no site grows and malloc does, pages of blocks that were
 * there before become resident, as they are written for the first time. */
function touched(detail: string): Finding {
  return {
    says: "no leak",
    kind: "warm-up",
    weight: 0.6,
    detail: `${detail} No site asks for more: blocks that were there before are being filled.`,
  };
}
