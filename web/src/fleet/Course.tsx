/** Memory of a service over time: in total, by version, by instance or by part of RSS. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import type { SeriesGroup, SeriesName } from "../../../src/model/wire/services.js";
import type { Theme } from "../theme/theme.js";
import { askSeries } from "./frame/api.js";
import { Waiting } from "./frame/Frame.js";
import type { Address, TimeRange } from "./frame/timeRange.js";
import { HeatPanel } from "./heat/HeatPanel.js";
import { FEWEST_ROWS } from "./heat/heatRows.js";
import { SeriesChart } from "./SeriesChart.js";

/** The chart's content, as named in the address. */
const CHARTS = {
  total: { label: "Total", name: "rssBytes", by: "none" },
  version: { label: "By version", name: "rssBytes", by: "version" },
  instance: { label: "By instance", name: "rssBytes", by: "instance" },
  ledger: { label: "By part of RSS", name: "ledger", by: "part" },
  devices: { label: "GPU memory", name: "deviceBytes", by: "version" },
  requests: { label: "Requests", name: "requestsPerSecond", by: "version" },
  live: { label: "Live bytes", name: "liveBytes", by: "version" },
} as const satisfies Record<string, { label: string; name: SeriesName; by: SeriesGroup }>;
/** Of a chart without a curve. */
const EMPTY: Readonly<Partial<Record<ChartName, string>>> = {
  devices:
    "No instance held GPU memory in this time. tidemark watch reads it from nvidia-smi on each host.",
  requests:
    "No instance counted its requests in this time. tidemark watch reads the count of tidemark.traffic, the middleware of the Python package.",
};
type ChartName = keyof typeof CHARTS;

interface CourseProps {
  theme: Theme;
  name: string;
  range: TimeRange;
  address: Address;
  /** False where all instances are those of other profilers, which send none. */
  hasRss: boolean;
  /** How many reported in the range. */
  instances: number;
}

export function Course({ name, range, theme, address, hasRss, instances }: CourseProps) {
  const { change, get } = address;
  const asked = get("chart");
  const chart: ChartName =
    asked !== null && asked in CHARTS ? (asked as ChartName) : hasRss ? "version" : "live";
  const { name: usual, by } = CHARTS[chart];
  const series = chart === "instance" && !hasRss ? "liveBytes" : usual;
  const isHeat = chart === "instance" && instances >= FEWEST_ROWS;
  const querySeries = (series: SeriesName, enabled: boolean) => ({
    // Its end moves with each change, also if the shown range is that of the same reports.
    queryKey: ["series", name, range, chart, series, address.range.endMs],
    queryFn: () => askSeries(name, range, { name: series, by }),
    placeholderData: keepPreviousData,
    enabled,
  });
  const usualQuery = useQuery(querySeries(series, !isHeat));
  // Without an agent there is no ledger, but the kernel counts kinds of pages.
  const isWithoutLedger = chart === "ledger" && usualQuery.data?.groups.length === 0;
  const pages = useQuery(querySeries("pages", isWithoutLedger));
  const query = isWithoutLedger ? pages : usualQuery;
  const choose = useCallback(
    (chosen: TimeRange) =>
      change({ from: String(chosen.startMs), to: String(chosen.endMs), since: null }),
    [change],
  );
  const nameOf = useCallback(
    (group: string) =>
      by === "instance" ? group.slice(0, 8) : group || (by === "version" ? "no version" : "RSS"),
    [by],
  );
  return (
    <section className="panel" aria-label="Memory over time">
      <div className="toolbar">
        <fieldset className="segments" aria-label="What the chart shows">
          {Object.entries(CHARTS).map(([id, { label }]) => (
            <button
              key={id}
              type="button"
              aria-pressed={id === chart}
              onClick={() => change({ chart: id })}
            >
              {label}
            </button>
          ))}
        </fieldset>
        <span className="note">
          {isHeat && "click a row to open the instance; "}drag over the chart to choose a range
        </span>
      </div>
      {isHeat ? (
        <HeatPanel
          service={name}
          range={range}
          name={series === "liveBytes" ? series : "rssBytes"}
          theme={theme}
          address={address}
          choose={choose}
        />
      ) : query.data === undefined ? (
        <Waiting error={query.error} />
      ) : (
        <SeriesChart
          answer={query.data}
          theme={theme}
          isStacked={by === "part"}
          empty={EMPTY[chart] ?? "Nothing was reported in this time."}
          nameOf={nameOf}
          choose={choose}
        />
      )}
    </section>
  );
}
