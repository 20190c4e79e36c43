/** The live view of a recording that grows: RSS, the hottest sites, how fast each grows and allocates. */

import { summarize } from "../../inspect/recorded/summary.js";
import type { SummaryJson } from "../../model/documents.js";
import { oneLine } from "../../model/errors.js";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatSignedBytes,
} from "../../model/numbers.js";
import type { Bytes, Millis } from "../../model/units.js";
import type { Recording } from "../../recording/types.js";
import { openRecordingAt, sizeOfFile } from "../files/recordings.js";
import { type ListOptions, selectRows } from "../options/options.js";
import {
  functionOf,
  groupKey,
  groupSites,
  groupText,
  placeOf,
  type SiteGroup,
} from "../screens/sites.js";
import { commandText } from "../screens/summary.js";
import { summaryContext } from "../screens/summary_context.js";
import { cutEnd, formatTable, type Screen, sparkline } from "../text/output.js";
import type { FullScreenView } from "./full_screen.js";
import { pressInList } from "./list_keys.js";

/** A site and how it moved since the look that it is compared with. */
export interface MovingSite {
  readonly group: SiteGroup;
  readonly growthPerMinute: Bytes;
  readonly allocatedPerSecond: Bytes;
}

export interface LiveSeen {
  readonly fileBytes: Bytes;
  readonly recording: Recording;
  readonly summary: SummaryJson;
  readonly sites: readonly MovingSite[];
  /** Between the two looks compared; 0 where there is one look at most. */
  readonly comparedMs: Millis;
}

const SORTS = {
  live: { key: "m", title: "live", of: (site: MovingSite) => site.group.live.bytes },
  growth: { key: "g", title: "growth", of: (site: MovingSite) => site.growthPerMinute },
  allocated: { key: "a", title: "allocation", of: (site: MovingSite) => site.allocatedPerSecond },
} as const;

type SortKey = keyof typeof SORTS;
const SORT_KEYS = Object.keys(SORTS) as SortKey[];

export interface LiveChoice {
  readonly sort: SortKey;
  readonly firstRow: number;
}

const INTERVAL_MS = 1000;
/** Rates are taken over at least this long, where the recording is that long: shorter ones are noise. */
const LEAST_COMPARED_MS = 10_000;
const HEAD_LINES = 6;
const MS_PER_MINUTE = 60_000;

/** @param name how the target was named by the user */
export function liveView(
  path: string,
  name: string,
  options: ListOptions,
): FullScreenView<LiveSeen, LiveChoice> {
  return {
    name: "live",
    instead: `tidemark summary ${name}`,
    intervalMs: INTERVAL_MS,
    choice: { sort: "live", firstRow: 0 },
    look: (before) => lookAtRecording(path, before),
    draw: (screen, seen, choice, rows) => drawLive(screen, seen, choice, options, rows),
    press: (choice, input, key) => pressInList(choice, input, key, SORTS),
  };
}

/** What stands in the recording now; what was seen before where nothing was added since. */
function lookAtRecording(path: string, before: LiveSeen | null): LiveSeen {
  const fileBytes = sizeOfFile(path);
  if (before !== null && before.fileBytes === fileBytes) {
    return before;
  }
  const recording = openRecordingAt(path);
  return { fileBytes, recording, ...movement(recording) };
}

/** The sites of the last look beside those of an earlier one. */
export function movement(recording: Recording): Omit<LiveSeen, "recording" | "fileBytes"> {
  const summary = summarize(recording, "end");
  const last = recording.looks.at(-1);
  const earlier =
    recording.looks.findLast(({ timeMs }) => timeMs <= (last?.timeMs ?? 0) - LEAST_COMPARED_MS) ??
    recording.looks[0];
  const comparedMs = last && earlier ? last.timeMs - earlier.timeMs : 0;
  const past = new Map<string, SiteGroup>();
  if (earlier !== undefined && comparedMs > 0) {
    for (const group of groupSites(summarize(recording, earlier.timeMs).sites)) {
      past.set(groupKey(group), group);
    }
  }
  const per = (change: Bytes, unitMs: Millis) =>
    comparedMs > 0 ? (change / comparedMs) * unitMs : 0;
  const sites = groupSites(summary.sites).map((group) => {
    const then = past.get(groupKey(group));
    return {
      group,
      growthPerMinute: per(group.live.bytes - (then?.live.bytes ?? 0), MS_PER_MINUTE),
      allocatedPerSecond: per(group.allocated.bytes - (then?.allocated.bytes ?? 0), 1000),
    };
  });
  return { summary, sites, comparedMs };
}

function drawLive(
  screen: Screen,
  seen: LiveSeen,
  choice: LiveChoice,
  options: ListOptions,
  rows: number,
): void {
  const { paint } = screen;
  drawHead(screen, seen);
  screen.line(
    paint.dim(
      `q quit  sort: ${SORT_KEYS.map((name) => `${SORTS[name].key} ${SORTS[name].title}`).join("  ")}` +
        `  now by ${SORTS[choice.sort].title}`,
    ),
  );
  const room = Math.max(1, rows - HEAD_LINES - 1);
  const { of } = SORTS[choice.sort];
  const matching = selectRows(
    seen.sites.toSorted((a, b) => of(b) - of(a)),
    options,
    0,
    (site) => site.group.live.bytes,
    (site) => groupText(site.group),
  ).rows;
  const from = Math.max(0, Math.min(choice.firstRow, matching.length - room));
  const table = formatTable(
    screen,
    [
      { title: "LIVE", align: "right", paint: paint.bold },
      { title: "±", align: "right", paint: paint.dim },
      { title: "GROWTH/MIN", align: "right" },
      { title: "ALLOCATED/S", align: "right" },
      { title: "OBJECTS", align: "right" },
      { title: "BY" },
      { title: "SITE", flexible: "cutEnd" },
    ],
    matching.slice(from, from + room).map(({ group, growthPerMinute, allocatedPerSecond }) => [
      formatBytes(group.live.bytes),
      formatBytes(group.live.standardErrorBytes),
      // A step smaller than the sampling's own noise is no growth.
      Math.abs(growthPerMinute) < perMinute(group.live.standardErrorBytes, seen.comparedMs)
        ? "-"
        : formatSignedBytes(growthPerMinute),
      allocatedPerSecond > 0 ? formatBytes(allocatedPerSecond) : "-",
      formatCount(group.liveObjects),
      group.domain === "python" ? "Python" : group.domain,
      siteText(group),
    ]),
  );
  for (const line of matching.length > 0 ? table : [paint.dim("  no site was sampled yet")]) {
    screen.line(line);
  }
}

/** "record  app.py:41", "load  app.py:7 · numpy/lib/npyio.py:123". */
function siteText({ headline, leaf }: SiteGroup): string {
  const places = [headline, ...(leaf === null ? [] : [leaf])].map(placeOf);
  return `${functionOf(headline)}  ${places.filter((place) => place !== "").join(" · ")}`;
}

function perMinute(bytes: Bytes, overMs: Millis): Bytes {
  return overMs > 0 ? (bytes / overMs) * MS_PER_MINUTE : Number.POSITIVE_INFINITY;
}

function drawHead(screen: Screen, { recording, summary, comparedMs }: LiveSeen): void {
  const { paint } = screen;
  const { rss, ending } = summaryContext(recording, summary, "end", null);
  const command = oneLine(commandText(summary.target.command));
  const length = formatDuration(recording.endMs - recording.startMs);
  screen.line(
    `${paint.cyan(paint.bold("tidemark live"))}  ${paint.bold(cutEnd(command, screen.columns - 16))}`,
  );
  const state = recording.complete ? ending : "recording";
  screen.line(paint.dim(`pid ${summary.target.pid} · ${state} · ${length} seen`));
  const now = `RSS ${formatBytes(summary.rss.endBytes)} · peak ${formatBytes(summary.rss.peakBytes)}`;
  const drawn = sparkline(rss.timesMs, rss.bytes, Math.max(8, screen.columns - now.length - 4));
  screen.line(`${paint.bold(now)}  ${paint.blue(drawn)}`);
  const live = summary.sites.reduce((sum, site) => sum + site.liveBytes, 0);
  const age = recording.looks.at(-1)?.timeMs ?? null;
  screen.line(
    `Live ${formatBytes(live)} · sampled every ${formatBytes(summary.agent.periodBytes)}` +
      (age === null ? "" : paint.dim(` · rates over ${formatDuration(comparedMs)}`)),
  );
  screen.line();
}
