import { unseenUpToBytes } from "../../model/base/interval.js";
import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatShare,
} from "../../model/base/numbers.js";
import type { Bytes, TimeMs } from "../../model/base/units.js";
import type { VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { LedgerPartName } from "../../model/profile/ledger.js";
import { fillsBlocks, keptMeanwhile } from "../causes/rarely_sampled_sites.js";
import { type PartGrowth, partGrowth } from "../evidence/ledger_growth.js";
import { type Observations, SMALLEST_RISE_BYTES } from "../evidence/observations.js";
import { isFirm } from "../series/growth.js";
import { median } from "../series/trend.js";
import { headlineOf } from "../sites/headline_frame.js";
import { loadSign } from "../sites/load.js";
import { type SiteHistories, valueAt } from "../sites/site_history.js";
import { isFull, type SiteJudgement } from "../sites/suspects.js";
import { settledBy } from "../wording/window_needed.js";
import { frameText } from "../wording/words.js";
import { mapsMore } from "./mapped_files.rule.js";
import { type Finding, open, type Rule, silent } from "./rule.js";
import { makesNewBlocks, unseenCalls } from "./unseen_calls.js";

/** The verdict that growth of a ledger part indicates if no site is known. */
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
/** Share of the ledger's growth that its fastest growing part must have. */
const MOST_OF_GROWTH = 0.5;
/**
 * Array buffers are also in malloc's part, and some libraries map their own pools. Without their holders these
 * cannot be distinguished.
 */
const UNSURE = new Set<LedgerPartName>(["malloc.used", "anon.other"]);

/**
 * Free memory rises while a heap settles, more and more slowly. Ledgers must cover this share of the time over
 * which RSS is judged.
 */
const LEAST_COVERED_OF_FREE = 1 / 3;
/** Share of the growth of Python's memory at sites that do not leak; with more, it is no sign of a leak. */
const LEAST_BOUNDED = 0.5;
/** The same, as a share of the whole growth, if sites that free what they allocate have a part in it. */
const LEAST_FILLED = 0.25;
const LOAD_WEIGHT = 0.65;
/** Share of the growth of free memory, or of malloc's, that certainly belongs to no site. */
const LEAST_UNUSED = 0.5;
/** 95 %. */
const STANDARD_ERRORS = 2;

/** RSS grows, and the ledger shows which part. If there are sites, they are better evidence. */
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
    const detail = `${first.part} rose by ${formatBytesBriefly(first.rise)} in ${formatDurationBriefly(first.spanMs)}, to ${formatBytesBriefly(first.level)}: ${formatShare(first.rise / all)} of the growth.`;
    const kind = MEANING[first.part] ?? null;
    const isEarly =
      kind === "allocator-retention" &&
      (first.covered < LEAST_COVERED_OF_FREE || !isFirm(target.growth("rssBytes")));
    const isRead = kind === "file-growth" && !mapsMore(target);
    const isMomentary = kind === "allocator-retention" && !staysFree(observations, first.rise);
    const isBounded = boundedRise(observations, first) >= LEAST_BOUNDED * first.rise;
    if (suspects.length > 0 || isBounded || isEarly || isRead || isMomentary) {
      return silent(detail);
    }
    if (evidence.sites && first.part === "python.used") {
      const bounded = boundedRises(observations, evidence.sites, first);
      const load = bounded.filter(({ kind }) => kind === "load");
      const [most] = load;
      if (most !== undefined && sumOfRises(load) >= LEAST_BOUNDED * first.rise) {
        return followsLoad(observations, first, most);
      }
      // Memory that is soon freed is not the leak, but alone it does not explain growth.
      const brief = sumOfRises(bounded.filter(({ kind }) => kind === "brief"));
      const explained = sumOfRises(bounded) - brief;
      const least = Math.max(LEAST_BOUNDED * (first.rise - brief), LEAST_FILLED * first.rise);
      if (explained >= least) {
        return silent(`${detail} Sites that have filled up hold it.`);
      }
    }
    if (evidence.sites && first.part === "malloc.used") {
      const pools = fillsBlocks(observations, first.rise);
      if (pools.length > 0) {
        return filled(observations, detail, pools);
      }
      if (keptBySites(observations) >= LEAST_UNUSED * first.rise) {
        return silent(detail);
      }
      if (!tellsWithoutSites(observations, first.rise)) {
        return unseen(detail);
      }
      return makesNewBlocks(target, first) ? unseenCalls(target, detail) : touched(detail);
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
          detail: `${detail} Objects that ${frameText(headlineOf(most.site))} keeps at the same time may hold it.`,
          suspects: meanwhile,
          growth: target.growth("rssBytes"),
        };
  },
};

/** False if private memory followed the live allocations: then the newest ledger was read while much had just been freed. */
function staysFree({ unused }: Observations, rise: Bytes): boolean {
  return unused === null || unused.keptBytes >= LEAST_UNUSED * rise;
}

/** What containers with a known bound gained in the ledgers' time. */
function boundedRise({ bounded }: Observations, { spanMs }: PartGrowth): Bytes {
  return bounded.reduce((sum, { suspect }) => sum + suspect.slope, 0) * spanMs;
}

/** Why a site does not leak: it filled up, serves a load, or frees what it allocates, without a sign of a load. */
type Bounded = "full" | "load" | "brief";

interface BoundedRise {
  readonly judgement: SiteJudgement;
  readonly kind: Bounded;
  readonly rise: Bytes;
}

/** A site that holds less than before explains no growth, nor does it hide what another one gained. */
function sumOfRises(sites: readonly BoundedRise[]): Bytes {
  return sites.reduce((sum, { rise }) => sum + Math.max(0, rise), 0);
}

/** Rises of the live bytes at the target's Python sites that do not leak, largest first. */
function boundedRises(
  { sites, target, evidence }: Observations,
  histories: SiteHistories,
  { fromMs, toMs }: PartGrowth,
): BoundedRise[] {
  const times = { startMs: evidence.window.startMs, fromMs, toMs };
  const kindOf = (judgement: SiteJudgement): Bounded | null => {
    if (isFull(judgement, histories, times.startMs)) {
      return "full";
    }
    if (judgement.course !== "churns") {
      return null;
    }
    return loadSign(judgement.site, histories, times) === "none" ? "brief" : "load";
  };
  return sites
    .filter(({ site }) => site.pid === target.process.pid && site.domain === "python")
    .flatMap((judgement) => {
      const kind = kindOf(judgement);
      const at = (timeMs: TimeMs) => valueAt(histories, judgement.site.liveBytes, timeMs);
      return kind === null ? [] : [{ judgement, kind, rise: at(toMs) - at(fromMs) }];
    })
    .sort((a, b) => b.rise - a.rise);
}

/** Objects live as briefly as before, but more of them at a time. Only a longer window can show that it falls again. */
function followsLoad(
  observations: Observations,
  { part, rise, spanMs }: PartGrowth & { readonly part: LedgerPartName },
  { judgement }: BoundedRise,
): Finding {
  const neededMs = 2 * observations.windowMs;
  return open(
    `${part} rose by ${formatBytesBriefly(rise)} in ${formatDurationBriefly(spanMs)}, but nothing is kept: ${frameText(headlineOf(judgement.site))} allocates more than before and frees it as quickly, as under a rising load; ${settledBy(observations, neededMs)}.`,
    LOAD_WEIGHT,
    neededMs,
  );
}

/** Bytes that all sites kept during the window, including sites that no rule suspects. */
function keptBySites({ sites }: Observations): Bytes {
  return sites.reduce(
    (sum, { course, keptBytes }) => sum + (course === "churns" ? 0 : keptBytes),
    0,
  );
}

/**
 * Whether the samples suffice to conclude that no site allocated the growing memory: growth that is not live at
 * any site must be most of it, even with the sampling error. The sampling period limits what an unsampled site
 * may hold.
 */
function tellsWithoutSites({ unused, target }: Observations, rise: Bytes): boolean {
  if (unused === null) {
    return true;
  }
  const periods = target.readings("periodBytes").values;
  const unseenBytes = periods.length > 0 ? unseenUpToBytes(median(periods)) : 0;
  const error = Math.max(STANDARD_ERRORS * unused.standardErrorBytes, unseenBytes);
  return unused.keptBytes - error >= LEAST_UNUSED * rise || error < LEAST_UNUSED * rise;
}

/** Samples are too rare compared with the growth (a high allocation rate raises the sampling period). */
function unseen(detail: string): Finding {
  return {
    ...silent(
      `${detail} Samples are too rare to identify a site that keeps it; use a longer window or a smaller --period.`,
    ),
    kind: "insufficient-evidence",
    weight: 0.6,
  };
}

/** A library's own pool, enlarged from time to time, fills steadily: RSS grows although blocks are rarely allocated. */
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
    detail: `${detail} ${frameText(headlineOf(first.site))} allocates large blocks from time to time and keeps them, and they fill up.`,
    suspects: pools,
    growth: target.growth("rssBytes"),
  };
}

/**
 * If malloc's memory grows, but neither a site nor the address space does, pages of older blocks become resident when
 * they are first written.
 */
function touched(detail: string): Finding {
  return {
    says: "no leak",
    kind: "warm-up",
    weight: 0.6,
    detail: `${detail} No site allocates more: existing blocks are being written for the first time.`,
  };
}
