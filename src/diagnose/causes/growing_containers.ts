/** Containers inside the holder that grow while their number stays: the lists of a dict that have no bound. */
import type { Bytes } from "../../model/base/units.js";
import type { HolderJson } from "../../model/documents/diagnosis_document.js";
import type { Observations } from "../evidence/observations.js";
import { isReallocated } from "../sites/accumulation.js";
import { type SiteHistory, valueAt } from "../sites/site_history.js";

/** Fewer may be the holder itself, which is reallocated as well, and what is next to it. One sample of its large block counts as many
 * objects, so there have to be as many samples. */
const SEVERAL_CONTAINERS = 4;
/** Objects of a site for each entry of the holder: with fewer, the entries are what grows. */
const MANY_OBJECTS = 10;
/** Where the containers themselves are accused: the most of them, as a multiple of the entries that the holder had when it was counted. */
const MOST_CONTAINERS = 2;
/** Containers whose own memory grows by less may be small ones that were just created. */
const CONTAINERS_GREW: Bytes = 2 ** 18;

/**
 * Whether the entries of the holder of `accused` gain objects, according to its lookup. If the lookup could not see that: whether
 * several blocks of a function that adds to the holder, or of what is inside it, are reallocated as they grow. Where each entry holds about one of the accused objects, the number of entries grows, unless these blocks are accused.
 */
export function haveContainersGrown(
  observations: Observations,
  accused: SiteHistory,
  holder: HolderJson,
): boolean {
  const { evidence, sites } = observations;
  const { sites: histories, window, holders = [] } = evidence;
  const seen = entriesGrow(observations, accused);
  if (seen !== null) {
    return seen;
  }
  const adders = new Set((holder.putters ?? []).map((each) => `${each.function} ${each.file}`));
  const isInside = (path: readonly string[] = []) =>
    path.length >= holder.path.length && holder.path.every((step, n) => step === path[n]);
  const ofEntry = objectsOfEntry(observations, accused, holder);
  const mayBeInside = ofEntry === 0 || ofEntry >= MANY_OBJECTS;
  const areThemselves = ({ key, objects }: SiteHistory) =>
    key === accused.key && (objects.at(-1) ?? 0) <= MOST_CONTAINERS * holder.entries;
  return (
    histories !== undefined &&
    histories !== null &&
    sites.some(({ site, slope }) => {
      const known = holders.find((each) => each.site === site.key)?.holder;
      const leaf = site.keptStacks[0]?.frames[0];
      return (
        (mayBeInside || areThemselves(site)) &&
        slope * (window.endMs - window.startMs) >= CONTAINERS_GREW &&
        Math.min(site.objects.at(-1) ?? 0, site.liveSamples) >= SEVERAL_CONTAINERS &&
        (isInside(known?.path) ||
          (leaf !== undefined && adders.has(`${leaf.function} ${leaf.file}`))) &&
        isReallocated(site, histories, window.startMs)
      );
    })
  );
}

/**
 * Whether the entries of the holder of `accused` gain objects as long as they exist, as its lookup saw or that of another site with the
 * same holder; null if none could see it.
 */
export function entriesGrow({ evidence }: Observations, accused: SiteHistory): boolean | null {
  const { holders = [] } = evidence;
  const own = holders.find(({ site }) => site === accused.key);
  const path = own?.holder?.path.join("\n");
  const same = holders.filter(
    ({ pid, holder }) => holder !== null && pid === own?.pid && holder.path.join("\n") === path,
  );
  return (
    own?.entriesGrow ?? same.find(({ entriesGrow: seen }) => seen !== null)?.entriesGrow ?? null
  );
}

/** How many of a site's objects each entry of its holder held when it was counted; 0 if that is unknown. */
export function objectsOfEntry(
  { evidence }: Observations,
  { objects }: SiteHistory,
  holder: HolderJson | null,
): number {
  return evidence.sites && holder !== null && holder.entries > 0 && objects.length > 0
    ? valueAt(evidence.sites, objects, holder.atMs ?? evidence.window.endMs) / holder.entries
    : 0;
}
