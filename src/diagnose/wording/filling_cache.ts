/** Text about caches that are filling: name, fill level, growth rate, size when full, and time until then. */

import {
  formatBytesBriefly,
  formatDurationBriefly,
  formatExactCount,
  formatShare,
} from "../../model/base/numbers.js";
import type { HolderJson } from "../../model/documents/diagnosis_document.js";
import { holderPathText } from "../../model/documents/holder_path.js";
import type { FilledSite } from "../causes/filled_sites.js";
import type { BoundedSuspect } from "../evidence/bounded_holders.js";
import type { Observations } from "../evidence/observations.js";
import { headlineOf } from "../sites/headline_frame.js";
import { LRU_CACHE, outsideLibrary } from "./holder_name.js";
import { frameText } from "./words.js";

const MS_PER_HOUR = 3_600_000;
const MAIN = "module __main__";
const NAME = /^\.?[^\W\d]\w*$/u;

/** A cached function as its program names it: "lru_cache of Catalog.page"; otherwise the path. */
export function holderName({ path }: Pick<HolderJson, "path">): string {
  const [first = "", ...rest] = path;
  const names = rest.slice(0, -1);
  if (!LRU_CACHE.test(rest.at(-1) ?? "") || !first.startsWith("module ") || names.length === 0) {
    return holderPathText(outsideLibrary(path));
  }
  if (!names.every((name) => NAME.test(name))) {
    return holderPathText(path);
  }
  const module = first === MAIN ? [] : [first.slice("module ".length)];
  return `lru_cache of ${[...module, ...names.map((name) => name.replace(/^\./, ""))].join(".")}`;
}

/** "lru_cache of Catalog.page is 2 % full (3,818 of 200,000 entries)" */
export function fillText({ holder, bound }: BoundedSuspect, verb: "is" | "was" = "is"): string {
  return `${holderName(holder)} ${verb} ${formatShare(holder.entries / bound)} full (${formatExactCount(holder.entries)} of ${formatExactCount(bound)} entries)`;
}

/** What follows the fill level: when it was read, the line, the rate, and the forecast. */
export function fillingParts(
  filling: BoundedSuspect,
  { evidence, total, windowMs }: Observations,
  growth: { readonly bytesPerHour: number; readonly limitBytes: number },
): string[] {
  const { holder, bound, suspect } = filling;
  const { startMs, endMs } = evidence.window;
  const countedMs = holder.atMs ?? endMs;
  const sinceMs = Math.max(0, endMs - countedMs);
  const isOld = sinceMs > SHORT_OF_WINDOW * windowMs;
  const level = isOld
    ? `${fillText(filling, "was")} ${formatDurationBriefly(countedMs - startMs)} after the start`
    : fillText(filling);
  const made =
    suspect.site.keptStacks.length === 0
      ? []
      : [`allocated by ${frameText(headlineOf(suspect.site))}`];
  const parts = [level, ...made];
  const slope = growth.bytesPerHour / MS_PER_HOUR;
  if (slope <= 0) {
    return parts;
  }
  const rate = `${formatBytesBriefly(growth.bytesPerHour)}/h`;
  const perEntry = holder.retainedBytes / Math.max(1, holder.entries);
  if (perEntry <= 0) {
    return [...parts, rate];
  }
  const full = bound * perEntry;
  const left = Math.max(0, full - holder.retainedBytes - slope * sinceMs);
  const needed = total.end.bytes + left;
  const room = growth.limitBytes - total.end.bytes;
  const forecast = `at this rate it is full in ${formatDurationBriefly(left / slope)} and then holds about ${formatBytesBriefly(full)}`;
  const limit =
    growth.limitBytes > 0 && needed > growth.limitBytes
      ? [
          `before that, the limit of ${formatBytesBriefly(growth.limitBytes)} is reached in ${formatDurationBriefly(Math.max(0, room) / slope)}`,
        ]
      : [];
  return [...parts, rate, forecast, ...limit];
}

/** A count that is older than this share of the window states its age. */
const SHORT_OF_WINDOW = 0.1;

/** "load (app.py:7) filled to 20 MiB and no longer grows." */
export function filledText({ judgement: { site }, full }: FilledSite): string {
  const where = frameText(headlineOf(site));
  const holds = formatBytesBriefly(site.liveBytes.at(-1) ?? 0);
  return full
    ? `${where} filled to ${holds} and no longer grows.`
    : `${where} keeps ${holds}, and grows more and more slowly: it may be a cache that is not full yet.`;
}
