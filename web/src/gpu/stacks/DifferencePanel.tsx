/** What differs between two moments, A and B: by site, and as a flame graph. */
import { type ReactNode, useMemo, useState } from "react";
import type { GpuPageDevice } from "../../../../src/model/documents/gpu/gpu_page.js";
import { formatBytes, formatCount, formatSignedBytes } from "../../format/numbers.js";
import type { Theme } from "../../theme/theme.js";
import { type Column, DataTable } from "../../widgets/DataTable.js";
import { GpuFlame } from "./GpuFlame.js";
import {
  CHANGES,
  type Change,
  changeOf,
  differenceOf,
  type SiteDifference,
} from "./gpuDifference.js";
import type { Side } from "./gpuFlame.js";

type DifferenceSide = Side & Pick<GpuPageDevice, "category">;

interface Props {
  before: DifferenceSide;
  after: DifferenceSide;
  theme: Theme;
  search: string;
  onSearch(text: string): void;
  /** Controls next to the heading: the two moments, and how to end the comparison. */
  children: ReactNode;
}

export function DifferencePanel({ before, after, theme, search, onSearch, children }: Props) {
  const [only, setOnly] = useState<Change | null>(null);
  const sites = useMemo(() => differenceOf(before, after), [before, after]);
  const wanted = search.trim().toLowerCase();
  const shown = useMemo(
    () =>
      sites.filter(
        (site) =>
          (only === null ? changeOf(site) !== "same" : changeOf(site) === only) &&
          `${site.frame.name} ${site.frame.place}`.toLowerCase().includes(wanted),
      ),
    [sites, only, wanted],
  );
  const change = sites.reduce((sum, site) => sum + site.after - site.before, 0);
  return (
    <section className="gpu-panel" aria-label="Difference">
      <div className="gpu-bar">
        <h2>
          From A to B: <span className={tone(change)}>{formatSignedBytes(change)}</span>
        </h2>
        {children}
        <span className="segments gpu-changes">
          <button type="button" aria-pressed={only === null} onClick={() => setOnly(null)}>
            all changes
          </button>
          {CHANGES.map((one) => (
            <button
              type="button"
              key={one}
              aria-pressed={only === one}
              onClick={() => setOnly(one)}
            >
              {one} {formatCount(sites.filter((site) => changeOf(site) === one).length)}
            </button>
          ))}
        </span>
      </div>
      <div className="gpu-sites">
        <DataTable
          name="Sites"
          rows={shown}
          columns={COLUMNS}
          keyOf={({ key }) => key}
          sortedBy="growth"
          open={({ frame }) => onSearch(frame.name)}
          empty={sites.length === 0 ? "Nothing was live at either moment." : "No such site."}
        />
      </div>
      <p className="gpu-scale-words" aria-hidden="true">
        <i className="scale-shrunk" /> shrunk <i className="scale-grown" /> grown; a box is as wide
        as the larger of both
      </p>
      <GpuFlame side={after} base={before} theme={theme} search={search} />
    </section>
  );
}

const tone = (bytes: number) => (bytes > 0 ? "grown" : bytes < 0 ? "shrunk" : "");

const bytesColumn = (
  id: "before" | "after",
  name: string,
  count: "allocationsBefore" | "allocationsAfter",
): Column<SiteDifference> => ({
  id,
  name,
  track: "6rem",
  numeric: true,
  wide: true,
  order: (site) => site[id],
  cell: (site) => (
    <span title={`${formatCount(site[count])} allocations`}>{formatBytes(site[id])}</span>
  ),
});

const COLUMNS: readonly Column<SiteDifference>[] = [
  {
    id: "growth",
    name: "Growth",
    title: "bytes in B minus bytes in A",
    track: "6.5rem",
    numeric: true,
    order: ({ before, after }) => after - before,
    cell: ({ before, after }) => (
      <b className={tone(after - before)}>{formatSignedBytes(after - before)}</b>
    ),
  },
  bytesColumn("before", "In A", "allocationsBefore"),
  bytesColumn("after", "In B", "allocationsAfter"),
  {
    id: "change",
    name: "Change",
    track: "5.5rem",
    wide: true,
    order: (site) => CHANGES.indexOf(changeOf(site)),
    cell: changeOf,
  },
  {
    id: "category",
    name: "For",
    track: "8rem",
    wide: true,
    order: ({ category }) => category,
    cell: ({ category }) => (category === "unknown" ? "" : category),
  },
  {
    id: "site",
    name: "Site",
    track: "minmax(9rem, 1fr)",
    order: ({ frame }) => frame.name,
    cell: ({ frame }) => (
      <span title={`${frame.name} ${frame.place}`}>
        <code>{frame.name}</code> <small>{frame.place}</small>
      </span>
    ),
  },
];
