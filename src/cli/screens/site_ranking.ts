/** The largest sites at the peak and at the requested moment, two lines each. */
import { addUp, type Estimate, type SiteGroup } from "../../inspect/index.js";
import { formatBytes, formatCount, formatShare } from "../../model/base/numbers.js";
import type { SummaryJson } from "../../model/documents/summary_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { hasErrors, isUnknown } from "../../model/profile/imported.js";
import { type ListOptions, selectRows } from "../options/options.js";
import { bar, padEnd, padStart, type Screen, widthOf } from "../text/output.js";
import { functionOf, groupText, originOf, placeOf } from "./sites.js";

export const DEFAULT_SITES = 5;
const UNSEEN_SHARE = 0.005;
/** A difference between the totals that a reader of the header wonders about. */
const SEEN_SHARE = 0.1;
const BAR_WIDTH = 10;

interface RankedMoment {
  /** "end", "peak", or the moment as the user wrote it. */
  readonly moment: string;
  readonly imported: SummaryJson["imported"];
}

interface Ranking extends Pick<RankedMoment, "imported"> {
  readonly title: string;
  readonly options: ListOptions;
}

/** The peak comes first, because it determines the memory that the machine needs. */
export function printSites(
  screen: Screen,
  { moment, imported }: RankedMoment,
  groups: readonly SiteGroup[],
  options: ListOptions,
): void {
  const now = (group: SiteGroup) => group.live;
  const atPeak = (group: SiteGroup) => group.atPeak;
  const rank = (title: string, figure: (group: SiteGroup) => Estimate) =>
    printRanking(screen, { title, imported, options }, groups, figure);
  const [noLive, noPeak] = [isUnknown(imported, "live"), isUnknown(imported, "peak")];
  if (noLive && noPeak) {
    rank("Top sites by allocated bytes", (group) => group.allocated);
  } else if (noLive) {
    rank("Top sites at the peak", atPeak);
  } else if (noPeak) {
    rank(`Top sites ${momentPhrase(moment)}`, now);
  } else if (moment === "peak" || isAtPeak(groups)) {
    const also = moment === "peak" ? "" : `, and ${momentPhrase(moment)}`;
    rank(`Top sites at the peak${also}`, now);
  } else {
    rank("Top sites at the peak", atPeak);
    rank(`Top sites ${momentPhrase(moment)}`, now);
  }
}

/**
 * Whether the moment's figures equal the peak's, except for invisible differences and the sampling error (two
 * standard errors). If so, one table is enough.
 */
function isAtPeak(groups: readonly SiteGroup[]): boolean {
  if (groups.every(({ live }) => live.bytes === 0)) {
    return groups.every(({ atPeak }) => atPeak.bytes === 0);
  }
  const total = groups.reduce((sum, group) => sum + group.atPeak.bytes, 0);
  const now = groups.reduce((sum, group) => sum + group.live.bytes, 0);
  if (Math.abs(total - now) > SEEN_SHARE * total) {
    return false; // the header shows both
  }
  return groups.every(({ live, atPeak }) => {
    const error = Math.hypot(live.standardErrorBytes, atPeak.standardErrorBytes);
    return Math.abs(live.bytes - atPeak.bytes) <= Math.max(UNSEEN_SHARE * total, 2 * error);
  });
}

function printRanking(
  screen: Screen,
  { title, imported, options }: Ranking,
  groups: readonly SiteGroup[],
  figure: (group: SiteGroup) => Estimate,
): void {
  const { paint } = screen;
  const ranked = groups
    .filter((group) => figure(group).bytes > 0)
    .sort((a, b) => figure(b).bytes - figure(a).bytes);
  const total = addUp(ranked, (group) => [figure(group).bytes, figure(group).standardErrorBytes]);
  const { rows, leftOut, unmatched } = selectRows(
    ranked,
    options,
    DEFAULT_SITES,
    (group) => figure(group).bytes,
    groupText,
  );
  screen.line();
  const amount = `${formatBytes(total.bytes)} ${title.includes("allocated") ? "allocated" : "live"} by ${formatCount(ranked.length)} ${ranked.length === 1 ? "site" : "sites"}`;
  const [first = "", ...others] = screen.wrap(`${title}  ${amount}`, 0);
  screen.line(paint.bold(first.slice(0, title.length)) + paint.dim(first.slice(title.length)));
  for (const line of others) {
    screen.line(paint.dim(`  ${line}`));
  }
  if (rows.length === 0) {
    screen.line(paint.dim(`  ${unmatched ?? "none"}`));
  }
  for (const group of rows) {
    const shown = { figure: figure(group), total: total.bytes, imported };
    for (const line of siteLines(screen, group, shown)) {
      screen.line(line);
    }
  }
  if (leftOut > 0) {
    const rest = total.bytes - rows.reduce((sum, group) => sum + figure(group).bytes, 0);
    const plain = options.min === undefined && options.filter === undefined;
    const held = plain ? ` with ${formatBytes(rest)}` : "";
    screen.line(paint.dim(`${" ".repeat(11)}${formatCount(leftOut)} more${held}`));
  }
}

/**
 *     312 MiB   38 %  ███▊        load_table                         app.py:41
 *    ±5.1 MiB                     Python · in genfromtxt  numpy/lib/npyio.py:123
 *
 * If nothing is cut, everything is on one line.
 */
function siteLines(
  screen: Screen,
  group: SiteGroup,
  { figure, total, imported }: { figure: Estimate; total: number } & Pick<RankedMoment, "imported">,
): string[] {
  const { paint } = screen;
  const share = total > 0 ? figure.bytes / total : 0;
  const colour = group.domain === "python" ? paint.green : paint.yellow;
  const left = 11 + 6 + 2 + BAR_WIDTH + 2;
  const room = screen.columns - left;
  const bytes = padStart(formatBytes(figure.bytes), 11);
  const drawn = padEnd(bar(share, BAR_WIDTH), BAR_WIDTH);
  const error = padStart(
    hasErrors(imported) ? `±${formatBytes(figure.standardErrorBytes)}` : "± unknown",
    11,
  );
  const headline = spread(
    screen,
    [oneLine(functionOf(group.headline)), oneLine(placeOf(group.headline))],
    room,
    [paint.bold, paint.cyan],
  );
  const known = group.domain === "mapped" || !isUnknown(imported, "python");
  const origin = known ? originOf(group.domain) : "allocator unknown";
  const leaf = group.leaf;
  const detail =
    leaf === null
      ? colour(origin)
      : `${colour(origin)}${paint.dim(" in ")}` +
        spread(
          screen,
          [oneLine(functionOf(leaf)), oneLine(placeOf(leaf))],
          room - widthOf(origin) - 4,
          [paint.dim, paint.dim],
        );
  if (!screen.cuts) {
    return [
      `${bytes} ${error}${padStart(formatShare(share), 6)}  ${drawn}  ${headline}  ${detail}`,
    ];
  }
  return [
    `${paint.bold(bytes)}${padStart(formatShare(share), 6)}  ${colour(drawn)}  ${headline}`,
    `${paint.dim(error)}${" ".repeat(left - 11)}${detail}`,
  ];
}

type Painter = (text: string) => string;

/** A name and its location in `room` columns; the location keeps its end, the name its beginning. */
function spread(
  screen: Screen,
  [name, place]: readonly [string, string],
  room: number,
  [paintName, paintPlace]: readonly [Painter, Painter],
): string {
  const gap = 2;
  if (place === "") {
    return paintName(screen.cutEnd(name, room));
  }
  if (name === "") {
    return paintPlace(screen.cutMiddle(place, room)); // tracemalloc does not know functions
  }
  const least = Math.min(widthOf(name), Math.floor(room * 0.4));
  const shownPlace = screen.cutMiddle(place, room - gap - least);
  const shownName = screen.cutEnd(name, room - gap - widthOf(shownPlace));
  return `${paintName(shownName)}${" ".repeat(gap)}${paintPlace(shownPlace)}`;
}

/** "at the end", "at 90s (seen at 88.2 s)". */
export function momentPhrase(moment: string): string {
  return moment === "end" ? "at the end" : `at ${moment}`;
}
