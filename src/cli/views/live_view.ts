/** The live view of a recording in progress: RSS, the largest sites, and how fast each grows and allocates. */

import {
  type MovingSite,
  type RecordingProgress,
  recordingProgress,
  type SiteGroup,
} from "../../inspect/index.js";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatSignedBytes,
} from "../../model/base/numbers.js";
import { shellWord } from "../../model/base/shell_word.js";
import { oneLine } from "../../model/errors/errors.js";
import { type ListOptions, selectRows } from "../options/options.js";
import { functionOf, groupText, placeOf } from "../screens/sites.js";
import { commandText } from "../screens/summary.js";
import { summaryContext } from "../screens/summary_context.js";
import { formatTable, type Screen, sparkline } from "../text/output.js";
import type { FullScreenView } from "./full_screen.js";
import { pressInList } from "./list_keys.js";

const SORTS = {
  live: { key: "m", title: "live", of: (site: MovingSite) => site.group.live.bytes },
  growth: { key: "g", title: "growth", of: (site: MovingSite) => site.growthPerMinute },
  allocated: { key: "a", title: "allocation", of: (site: MovingSite) => site.allocatedPerSecond },
} as const;

type SortKey = keyof typeof SORTS;
const SORT_KEYS = Object.keys(SORTS) as SortKey[];

interface LiveChoice {
  readonly sort: SortKey;
  readonly firstRow: number;
}

const INTERVAL_MS = 1000;
const HEAD_LINES = 6;

/** @param name the target as named by the user */
export function liveView(
  path: string,
  name: string,
  options: ListOptions,
): FullScreenView<RecordingProgress, LiveChoice> {
  return {
    name: "live",
    instead: `tidemark summary ${shellWord(name)}`,
    intervalMs: INTERVAL_MS,
    choice: { sort: "live", firstRow: 0 },
    poll: (before) => recordingProgress(path, before),
    draw: (screen, seen, choice, rows) => drawLive(screen, seen, choice, options, rows),
    press: (choice, input, key) => pressInList(choice, input, key, SORTS),
  };
}

function drawLive(
  screen: Screen,
  seen: RecordingProgress,
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
  const { rows: matching, unmatched } = selectRows(
    seen.sites.filter(isActive).toSorted((a, b) => of(b) - of(a)),
    options,
    0,
    (site) => site.group.live.bytes,
    (site) => groupText(site.group),
  );
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
    matching.slice(from, from + room).map((site) => {
      const { group, growthPerMinute, growthErrorPerMinute, allocatedPerSecond } = site;
      // A change within the sampling error is not growth.
      const moved = growthPerMinute !== 0 && Math.abs(growthPerMinute) >= growthErrorPerMinute;
      return [
        formatBytes(group.live.bytes),
        formatBytes(group.live.standardErrorBytes),
        moved ? formatSignedBytes(growthPerMinute) : "-",
        allocatedPerSecond > 0 ? formatBytes(allocatedPerSecond) : "-",
        formatCount(group.liveObjects),
        group.domain === "python" ? "Python" : group.domain,
        siteText(group),
      ];
    }),
  );
  for (const line of matching.length > 0
    ? table
    : [paint.dim(`  ${unmatched ?? "no site was sampled yet"}`)]) {
    screen.line(line);
  }
}

/** False for a site whose blocks are all freed, and which allocates nothing now. */
function isActive(site: MovingSite): boolean {
  return site.group.live.bytes > 0 || Object.values(SORTS).some(({ of }) => of(site) !== 0);
}

/** "record  app.py:41", "load  app.py:7 · numpy/lib/npyio.py:123". */
function siteText({ headline, leaf }: SiteGroup): string {
  const places = [headline, ...(leaf === null ? [] : [leaf])].map(placeOf);
  return `${functionOf(headline)}  ${places.filter((place) => place !== "").join(" · ")}`;
}

function drawHead(screen: Screen, { recording, summary, comparedMs }: RecordingProgress): void {
  const { paint } = screen;
  const { rss, ending } = summaryContext(recording, summary, "end", null);
  const command = oneLine(commandText(summary.target.command));
  const length = formatDuration(recording.endMs - recording.startMs);
  screen.line(
    `${paint.cyan(paint.bold("tidemark live"))}  ${paint.bold(screen.cutEnd(command, screen.columns - 16))}`,
  );
  const state = recording.complete ? ending : "recording";
  screen.line(paint.dim(`pid ${summary.target.pid} · ${state} · ${length} seen`));
  const now = `RSS ${formatBytes(summary.rss.endBytes)} · peak ${formatBytes(summary.rss.peakBytes)}`;
  const drawn = sparkline(rss.timesMs, rss.bytes, Math.max(8, screen.columns - now.length - 4));
  screen.line(`${paint.bold(now)}  ${paint.blue(drawn)}`);
  const live = summary.sites.reduce((sum, site) => sum + site.liveBytes, 0);
  const age = recording.snapshots.at(-1)?.timeMs ?? null;
  screen.line(
    `Live ${formatBytes(live)} · sampled every ${formatBytes(summary.agent.periodBytes)}` +
      (age === null ? "" : paint.dim(` · rates over ${formatDuration(comparedMs)}`)),
  );
  screen.line();
}
