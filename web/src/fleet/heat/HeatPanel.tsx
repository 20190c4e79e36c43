/** The heat map of a service's instances with its legend, its scale and its order. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { useLocation } from "wouter";
import type { HeatMapName } from "../../../../src/model/wire/heat_map.js";
import { formatBytes, formatCount } from "../../format/numbers.js";
import type { Theme } from "../../theme/theme.js";
import { askHeatMap } from "../frame/api.js";
import { Waiting } from "../frame/Frame.js";
import type { Address, TimeRange } from "../frame/timeRange.js";
import { HeatMap } from "./HeatMap.js";
import { HEAT_ORDERS, type HeatOrder, hasLimits, heatRows } from "./heatRows.js";

interface HeatPanelProps {
  service: string;
  range: TimeRange;
  name: HeatMapName;
  theme: Theme;
  address: Address;
  choose: (range: TimeRange) => void;
}

export function HeatPanel({ service, range, name, theme, address, choose }: HeatPanelProps) {
  const { change, get } = address;
  const [, go] = useLocation();
  const query = useQuery({
    // Its end moves with each change, also if the shown range is that of the same reports.
    queryKey: ["heat", service, range, name, address.range.endMs],
    queryFn: () => askHeatMap(service, range, name),
    placeholderData: keepPreviousData,
  });
  const answer = query.data;
  const asked = get("rows");
  const order: HeatOrder = asked !== null && asked in HEAT_ORDERS ? (asked as HeatOrder) : "peak";
  const isLimited = answer !== undefined && name === "rssBytes" && hasLimits(answer);
  const scale = isLimited && get("heat") !== "largest" ? "limit" : "largest";
  const shown = useMemo(
    () => (answer === undefined ? null : heatRows(answer, scale, order)),
    [answer, scale, order],
  );
  const open = useCallback((stream: string) => go(`/instance/${stream}`), [go]);
  if (answer === undefined || shown === null) {
    return <Waiting error={query.error} />;
  }
  if (shown.rows.length === 0) {
    return <p className="empty">Nothing was reported in this time.</p>;
  }
  const most = scale === "limit" ? "its limit" : formatBytes(shown.whole[0] ?? 0);
  return (
    <figure className="heat-panel" aria-label="Memory of each instance">
      <figcaption className="heat-legend">
        <span>
          {formatCount(shown.rows.length)} instances
          {answer.otherInstances > 0 &&
            `; ${formatCount(answer.otherInstances)} with smaller peaks are left out`}
        </span>
        {shown.odd > 0 && (
          <span
            className="heat-odd"
            title="Memory far from the median of the other instances of the same version"
          >
            {formatCount(shown.odd)} odd
          </span>
        )}
        <span className="heat-scale">
          0 <i aria-hidden="true" /> {most}
        </span>
        <span className="heat-none">
          <i aria-hidden="true" /> not running
        </span>
        <span className="heat-choices">
          {isLimited && (
            <label className="select">
              Colour
              <select value={scale} onChange={(event) => change({ heat: event.target.value })}>
                <option value="limit">share of the limit</option>
                <option value="largest">share of the largest</option>
              </select>
            </label>
          )}
          <label className="select">
            Sort by
            <select value={order} onChange={(event) => change({ rows: event.target.value })}>
              {Object.entries(HEAT_ORDERS).map(([id, label]) => (
                <option key={id} value={id}>
                  {label.toLowerCase()}
                </option>
              ))}
            </select>
          </label>
        </span>
      </figcaption>
      <HeatMap answer={answer} shown={shown} theme={theme} open={open} choose={choose} />
    </figure>
  );
}
