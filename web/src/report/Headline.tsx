/** The most important facts: how much memory, when, from which sites, how fast it grows, and what is missing. */
import { useMemo } from "react";
import type { DiagnosisPage } from "../../../src/model/documents/diagnosis_page.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import type { SummaryJson } from "../../../src/model/documents/summary_document.js";
import { baseName } from "../../../src/model/profile/frame_text.js";
import { type ImportedFigure, isUnknown } from "../../../src/model/profile/imported.js";
import { peakTimeText } from "../../../src/model/profile/peak_time.js";
import type { ProfileSnapshot, ProfileTables } from "../../../src/model/profile/profile.js";
import { EVERY_ROW, selectSites } from "../../../src/model/profile/row_filter.js";
import { groupSites, NO_FRAME, type SiteGroup } from "../../../src/model/profile/site_groups.js";
import { moodOf } from "../diagnosis/words.js";
import { noSamples } from "../format/absent.js";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatElapsed,
  formatShare,
} from "../format/numbers.js";
import { frameWords } from "../frames/frameNames.js";
import { ownFrameOf } from "../frames/ownFrames.js";
import type { Theme } from "../theme/theme.js";
import { growthFigure } from "./growthFigure.js";

interface HeadlineProps {
  report: ReportDocument;
  /** The snapshot that the page shows. */
  snapshot: ProfileSnapshot | null;
  theme: Theme;
  toggleTheme: () => void;
  help: () => void;
  openDiagnosis: () => void;
}

export function Headline(props: HeadlineProps) {
  const { report, snapshot, openDiagnosis } = props;
  const { summary } = report;
  const seen = summary.agent.samples > 0 || summary.imported !== undefined ? snapshot : null;
  return (
    <header className="head">
      <TitleBar {...props} />
      <Figures report={report} snapshot={seen} />
      {report.diagnosis && <HeadVerdict page={report.diagnosis} open={openDiagnosis} />}
      <div className="words">
        <ul className="sentences">
          {summary.where !== undefined && (
            <li>
              Only {summary.where}: live and allocated bytes, sites and verdict are of this alone;
              all other figures are of the whole program.
            </li>
          )}
          {seen ? (
            <Sentences report={report} snapshot={seen} />
          ) : (
            <li className="missing">
              {summary.imported === undefined
                ? "No allocation site is known: there are no samples in this recording."
                : `No allocation site is known. ${noSamples(summary.imported)}`}
            </li>
          )}
        </ul>
        {summary.limits.length > 0 && (
          <details className="limits">
            <summary>
              What could not be seen <span className="count">{summary.limits.length}</span>
            </summary>
            <ul>
              {summary.limits.map((limit) => (
                <li key={limit}>{limit}</li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </header>
  );
}

function TitleBar({ report, theme, toggleTheme, help }: HeadlineProps) {
  const { summary, title } = report;
  return (
    <div className="bar">
      <span className="brand">
        <Mark /> Tidemark
      </span>
      <h1 title={summary.target.command.join(" ")}>
        {title} <code>{summary.target.command.join(" ")}</code>
      </h1>
      <button
        type="button"
        className="icon"
        onClick={toggleTheme}
        aria-label={theme === "dark" ? "Light colours" : "Dark colours"}
      >
        {theme === "dark" ? "☀" : "☾"}
      </button>
      <button type="button" className="icon" onClick={help} aria-label="Keyboard and help">
        ?
      </button>
    </div>
  );
}

function Figures({ report, snapshot }: Pick<HeadlineProps, "report" | "snapshot">) {
  const { summary } = report;
  const { startMs, endMs } = summary.window;
  const rssKnown = summary.rss.peakBytes > 0;
  // Memory shared by several processes counts once.
  const name = summary.pss ? "PSS" : "RSS";
  const { peakBytes, endBytes, endMs: readMs = endMs, ...peak } = summary.pss ?? summary.rss;
  const unknown = (figure: ImportedFigure) => isUnknown(summary.imported, figure);
  const live = unknown("live") ? null : snapshot && totalLive(snapshot);
  const absentRss = unknown("rss") ? "unknown" : "not recorded";
  const absentLive = unknown("live") ? "unknown" : "no samples";
  const growth = growthFigure(summary, report.diagnosis?.diagnosis);
  const sampling =
    summary.imported === undefined
      ? `${formatCount(summary.agent.samples)} samples, one in ${formatBytes(summary.agent.periodBytes)}`
      : `${unknown("allocated") ? "unknown, " : ""}imported from ${summary.imported.tool}`;
  return (
    <dl className="figures">
      <Figure
        name={`Peak ${name}`}
        value={rssKnown ? formatBytes(peakBytes) : "-"}
        note={
          rssKnown ? peakTimeText(peak, startMs, (at) => formatElapsed(at, startMs)) : absentRss
        }
        strong
      />
      <Figure
        name={`Final ${name}`}
        value={rssKnown ? formatBytes(endBytes) : "-"}
        note={unknown("time") ? "times unknown" : `after ${formatDuration(readMs - startMs)}`}
        strong
      />
      <Figure name="Growth" value={growth.value} note={growth.note} />
      <Figure
        name="Live, profiled"
        value={live ? formatBytes(live.bytes) : "–"}
        note={
          snapshot && live
            ? `${errorText(summary.imported, live.error)} ${whenOf(report, snapshot)}`
            : absentLive
        }
      />
      <Figure
        name="Allocates"
        value={
          unknown("allocated") || unknown("time")
            ? "–"
            : `${formatBytes(summary.agent.allocatedBytesPerSecond)}/s`
        }
        note={sampling}
      />
      <Figure
        name="Processes"
        value={String(summary.processes.length)}
        note={
          summary.imported === undefined
            ? `${summary.processes.filter((process) => process.profiled).length} profiled`
            : `imported from ${summary.imported.file}`
        }
      />
    </dl>
  );
}

function Figure({
  name,
  value,
  note,
  strong,
}: {
  name: string;
  value: string;
  note: string;
  strong?: boolean;
}) {
  return (
    <div className={strong ? "figure strong" : "figure"}>
      <dt>{name}</dt>
      <dd className="value">{value}</dd>
      <dd className="note">{note}</dd>
    </div>
  );
}

interface SentencesProps {
  report: ReportDocument;
  snapshot: ProfileSnapshot;
}

/** The three lines of the user's own code that hold most in the snapshot. */
function Sentences({ report, snapshot }: SentencesProps) {
  const { tables } = report;
  const frameOf = useMemo(() => ownFrameOf(tables), [tables]);
  const groups = useMemo(
    () =>
      byLine(
        tables,
        groupSites(tables, snapshot, selectSites(tables, snapshot.sites, EVERY_ROW), frameOf),
      ),
    [tables, snapshot, frameOf],
  );
  const total = groups.reduce((sum, group) => sum + group.liveBytes, 0);
  const top = groups
    .filter((group) => group.liveBytes >= 1)
    .sort((a, b) => b.liveBytes - a.liveBytes)
    .slice(0, 3);
  const when = whenOf(report, snapshot);
  const { imported } = report.summary;
  if (isUnknown(imported, "live")) {
    return <li>This recording, imported from {imported?.tool}, has no live bytes.</li>;
  }
  if (top.length === 0) {
    return (
      <li>
        {imported === undefined ? "Nothing that was sampled" : "Nothing"} is live {when}.
      </li>
    );
  }
  return top.map((group) => {
    const words = group.frame === NO_FRAME ? null : frameWords(tables, group.frame);
    return (
      <li key={group.key}>
        <i className={`dot dot-${DOMAIN_CLASSES[group.domain]}`} />{" "}
        <b>{formatBytes(group.liveBytes)}</b> ({formatShare(group.liveBytes / total)}) live {when}{" "}
        from{" "}
        {words?.function !== baseName(words?.file ?? "") && (
          <code>{words?.function ?? "an unknown stack"}</code>
        )}
        {words?.place && <span className="place"> {words.place}</span>}
        {imported === undefined && (
          <span className="error"> ± {formatBytes(Math.sqrt(group.liveVariance))}</span>
        )}
      </li>
    );
  });
}

/** One group for each line, of all allocators, as `tidemark lines` counts; its domain is that of the largest part. */
function byLine(tables: ProfileTables, groups: readonly SiteGroup[]): SiteGroup[] {
  const lines = new Map<string, SiteGroup>();
  for (const group of groups.toSorted((a, b) => b.liveBytes - a.liveBytes)) {
    const words = group.frame === NO_FRAME ? null : frameWords(tables, group.frame);
    const key = words === null ? "" : `${words.line} ${words.file} ${words.function}`;
    const known = lines.get(key);
    if (known === undefined) {
      lines.set(key, group);
    } else {
      known.liveBytes += group.liveBytes;
      known.liveVariance += group.liveVariance;
    }
  }
  return [...lines.values()];
}

/** "at the end", "at +1:05". */
function whenOf({ snapshots, summary }: ReportDocument, snapshot: ProfileSnapshot): string {
  return snapshot === snapshots[snapshots.length - 1]
    ? "at the end"
    : `at ${formatElapsed(snapshot.timeMs, summary.window.startMs)}`;
}

/** "exact", "± 12 KiB"; "estimated" if the error is unknown. */
function errorText(imported: SummaryJson["imported"], error: number): string {
  return imported === undefined
    ? `± ${formatBytes(error)}`
    : imported.precision === "exact"
      ? "exact"
      : imported.precision === "sampled"
        ? "estimated"
        : "error unknown";
}

function totalLive({ sites }: ProfileSnapshot): { bytes: number; error: number } {
  const sum = (column: Float64Array) => column.reduce((a, b) => a + b, 0);
  return { bytes: sum(sites.liveBytes), error: Math.sqrt(sum(sites.liveVariance)) };
}

const DOMAIN_CLASSES = ["python", "native", "mapped"] as const;

/** Highest and lowest value. */
function Mark() {
  return (
    <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
      <path
        d="M1 7.5c3-4 6-4 9 0s6 4 9 0"
        fill="none"
        stroke="var(--accent)"
        strokeWidth="2.4"
        strokeLinecap="round"
      />
      <path
        d="M1 14c3-4 6-4 9 0s6 4 9 0"
        fill="none"
        stroke="var(--native)"
        strokeWidth="2.4"
        strokeLinecap="round"
      />
    </svg>
  );
}

/** The verdict in the page's header, with a button that opens its tab. */
function HeadVerdict({ page, open }: { page: DiagnosisPage; open: () => void }) {
  const { kind, confidence, summary } = page.diagnosis.verdict;
  return (
    <p className={`head-verdict verdict-${moodOf(kind)}`}>
      <b>{kind}</b>
      {kind === "insufficient-evidence" ? "" : ` (${Math.round(confidence * 100)} % sure)`} ·{" "}
      {summary}{" "}
      <button type="button" className="quiet" onClick={open}>
        Why, and what to do
      </button>
    </p>
  );
}
