/** One instance: the current report of its recording. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { instanceStateText } from "../../../src/model/documents/instance_text.js";
import { formatBytes } from "../format/numbers.js";
import { ReportApp } from "../report/ReportApp.js";
import { askInstance, askReport } from "./frame/api.js";
import { Frame, Waiting } from "./frame/Frame.js";
import { useNow } from "./frame/live.js";
import { serviceAddress } from "./frame/timeRange.js";
import type { PageProps } from "./ServicesPage.js";

export function InstancePage({ stream, theme, toggleTheme }: PageProps & { stream: string }) {
  const nowMs = useNow();
  const about = useQuery({ queryKey: ["instance", stream], queryFn: () => askInstance(stream) });
  // Not updated with every change, because the reader is looking at one moment.
  const report = useQuery({
    queryKey: ["report", stream],
    queryFn: () => askReport(stream),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (report.data === undefined) {
    return (
      <Frame path={[["Services", "/"]]} theme={theme} toggleTheme={toggleTheme}>
        <Waiting error={about.error ?? report.error} />
      </Frame>
    );
  }
  const { data: row } = about;
  return (
    <>
      <nav className="fleet-path fleet-above" aria-label="Path">
        <Link href="/">Services</Link>
        {row !== undefined && <Link href={serviceAddress(row.service)}>{row.service}</Link>}
        <code>{stream.slice(0, 8)}</code>
        {row !== undefined && (
          <span className="note">
            {[row.version, row.pod || row.host].filter(Boolean).join(" on ")} ·{" "}
            {instanceStateText(row, nowMs)}
            {row.state === "running" && `, ${formatBytes(row.rssBytes)} now`}
          </span>
        )}
        <button type="button" className="toggle" onClick={() => void report.refetch()}>
          {report.isFetching ? "Asking…" : "Read again"}
        </button>
      </nav>
      <ReportApp
        key={report.dataUpdatedAt}
        report={{ ...report.data, title: row?.service ?? stream }}
      />
    </>
  );
}
