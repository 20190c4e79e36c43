/** One instance: the current report of its recording. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { formatBytes } from "../format/numbers.js";
import { ReportApp } from "../report/ReportApp.js";
import { askInstance, askReport } from "./frame/api.js";
import { Frame, Waiting } from "./frame/Frame.js";
import { serviceAddress } from "./frame/timeRange.js";
import type { PageProps } from "./ServicesPage.js";

export function InstancePage({ stream, theme, toggleTheme }: PageProps & { stream: string }) {
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
  const { service, rssBytes, endedMs, version, host, pod } = about.data ?? {};
  return (
    <>
      <nav className="fleet-path fleet-above" aria-label="Path">
        <Link href="/">Services</Link>
        {service !== undefined && <Link href={serviceAddress(service)}>{service}</Link>}
        <code>{stream.slice(0, 8)}</code>
        {rssBytes !== undefined && (
          <span className="note">
            {[version, pod || host].filter(Boolean).join(" on ")} ·{" "}
            {endedMs === undefined ? `runs, ${formatBytes(rssBytes)} now` : "ended"}
          </span>
        )}
        <button type="button" className="toggle" onClick={() => void report.refetch()}>
          {report.isFetching ? "Asking…" : "Read again"}
        </button>
      </nav>
      <ReportApp key={report.dataUpdatedAt} report={{ ...report.data, title: service ?? stream }} />
    </>
  );
}
