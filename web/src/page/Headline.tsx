/** What a reader should know first: how much, when, from where, how fast it grows, what is missing. */
import type { SummarySiteJson } from "../../../src/model/documents.js";
import type { ReportDocument } from "../../../src/model/report.js";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatGrowth,
  formatRelative,
  formatShare,
} from "./format.js";
import type { Theme } from "./theme.js";

interface HeadlineProps {
  report: ReportDocument;
  theme: Theme;
  toggleTheme: () => void;
  help: () => void;
}

export function Headline({ report, theme, toggleTheme, help }: HeadlineProps) {
  const { summary, title } = report;
  const { startMs, endMs } = summary.window;
  const live = totalLive(report);
  return (
    <header className="head">
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
      <dl className="figures">
        <Figure
          name="Peak RSS"
          value={formatBytes(summary.rss.peakBytes)}
          note={`at ${formatRelative(summary.rss.peakMs, startMs)}`}
          strong
        />
        <Figure
          name="Final RSS"
          value={formatBytes(summary.rss.endBytes)}
          note={`after ${formatDuration(endMs - startMs)}`}
          strong
        />
        <Figure
          name="Growth"
          value={formatGrowth(summary.series.growthBytesPerHour)}
          note={`${summary.series.treePssBytes > 0 ? "PSS" : "RSS"} after the first third`}
        />
        <Figure
          name="Live, profiled"
          value={live ? formatBytes(live.bytes) : "–"}
          note={live ? `± ${formatBytes(live.error)} at the end` : "no samples"}
        />
        <Figure
          name="Allocates"
          value={`${formatBytes(summary.agent.allocatedBytesPerSecond)}/s`}
          note={`${formatCount(summary.agent.samples)} samples, one in ${formatBytes(summary.agent.periodBytes)}`}
        />
        <Figure
          name="Processes"
          value={String(summary.processes.length)}
          note={`${summary.processes.filter((process) => process.profiled).length} profiled`}
        />
      </dl>
      <div className="words">
        <ul className="sentences">
          {summary.sites.slice(0, 3).map((site, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes
            <li key={index}>
              <Sentence site={site} total={live?.bytes ?? 0} />
            </li>
          ))}
          {summary.sites.length === 0 && (
            <li className="missing">
              No allocation site is known: there are no samples in this recording.
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

function Sentence({ site, total }: { site: SummarySiteJson; total: number }) {
  const frame = site.stack.find((one) => one.kind === "python") ?? site.stack[0];
  const where = frame
    ? `${frame.file.slice(frame.file.lastIndexOf("/") + 1)}${frame.line > 0 ? `:${frame.line}` : ""}`
    : "";
  return (
    <>
      <i className={`dot dot-${site.domain}`} /> <b>{formatBytes(site.liveBytes)}</b>
      {total > 0 && <> ({formatShare(site.liveBytes / total)})</>} live from{" "}
      <code>{frame?.function ?? "an unknown stack"}</code>
      {where && <span className="place"> {where}</span>}
      <span className="error"> ± {formatBytes(site.standardErrorBytes)}</span>
    </>
  );
}

function totalLive({ looks }: ReportDocument): { bytes: number; error: number } | null {
  const sites = looks.at(-1)?.sites;
  if (!sites || sites.length === 0) return null;
  let bytes = 0;
  let variance = 0;
  for (let row = 0; row < sites.length; row++) {
    bytes += sites.liveBytes[row];
    variance += sites.liveVariance[row];
  }
  return { bytes, error: Math.sqrt(variance) };
}

/** High water and low water. */
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
