/** The page of a device's snapshot: timeline, address space, flame graph and details of one moment. */

import { type ReactNode, useDeferredValue, useMemo, useState } from "react";
import { float64At, itemAt, uint32At } from "../../../src/model/base/columns.js";
import type { GpuJson } from "../../../src/model/documents/gpu/gpu_document.js";
import type { GpuPageDevice, GpuPageDocument } from "../../../src/model/documents/gpu/gpu_page.js";
import { type GpuReplay, heldAt } from "../../../src/model/gpu/gpu_replay.js";
import { formatBytes, formatCount } from "../format/numbers.js";
import { type Theme, useTheme } from "../theme/theme.js";
import { AllocationDetails } from "./AllocationDetails.js";
import { AddressSpace } from "./addresses/AddressSpace.js";
import { GpuLegend } from "./colours/GpuLegend.js";
import { gpuPalette } from "./colours/gpuColours.js";
import { GpuFigures } from "./GpuFigures.js";
import { DeviceChoice, GpuHead } from "./GpuHead.js";
import { MomentBar } from "./MomentBar.js";
import { DifferencePanel } from "./stacks/DifferencePanel.js";
import { GpuFlame } from "./stacks/GpuFlame.js";
import { searchStacks } from "./stacks/stackNames.js";
import { GpuTimeline } from "./timeline/GpuTimeline.js";
import { useDeviceShape } from "./timeline/useDeviceShape.js";

const TIMELINE_HEIGHT = 300;
/** Space above the highest moment. */
export const HEADROOM = 1.04;

export function GpuApp({ page }: { page: GpuPageDocument }) {
  const [theme, toggleTheme] = useTheme();
  const [shown, setShown] = useState(0);
  return (
    <>
      <GpuHead title={page.title} theme={theme} toggleTheme={toggleTheme}>
        <DeviceChoice
          devices={page.devices.map(({ replay }) => replay.device)}
          shown={shown}
          choose={setShown}
        />
      </GpuHead>
      {page.devices[shown] === undefined ? (
        <p className="gpu-hint">{page.summary.limits[0]}</p>
      ) : (
        <DevicePage key={shown} page={page} row={shown} theme={theme} />
      )}
    </>
  );
}

function DevicePage({ page, row, theme }: { page: GpuPageDocument; row: number; theme: Theme }) {
  const device = itemAt(page.devices, row);
  const summary = itemAt(page.summary.devices, row);
  const { tables } = page;
  const [moment, setMoment] = useState(summary.peak.eventIndex);
  const [base, setBase] = useState<number | null>(null);
  const [chosen, setChosen] = useState(-1);
  const { search, setSearch, sought, found } = useSearch(tables);
  const shape = useDeviceShape(device);
  const palette = useMemo(() => gpuPalette(theme), [theme]);
  // The scrubber stays responsive while the panels below it are drawn.
  const shownMoment = useDeferredValue(moment);
  const { side, sideBefore } = useSides(device, tables, { moment: shownMoment, base });
  const { held } = side;
  return (
    <main className="gpu-page">
      <GpuFigures summary={summary} />
      <section className="gpu-panel">
        <SearchBar device={device} held={held} found={found} search={search} onSearch={setSearch}>
          <GpuLegend palette={palette} category={device.category} />
        </SearchBar>
        <GpuTimeline
          device={device}
          shape={shape}
          summary={summary}
          palette={palette}
          height={TIMELINE_HEIGHT}
          top={shape.highest * HEADROOM}
          moment={moment}
          base={base}
          found={found}
          onMoment={setMoment}
          onChoose={setChosen}
        />
        <MomentBar device={device} summary={summary} moment={moment} onMoment={setMoment}>
          <button type="button" className="button" onClick={() => setBase(moment)}>
            Compare from here
          </button>
        </MomentBar>
      </section>
      {sideBefore !== null && base !== null && (
        <DifferencePanel
          before={sideBefore}
          after={side}
          theme={theme}
          search={sought}
          onSearch={setSearch}
        >
          <Comparison base={base} moment={moment} setBase={setBase} />
        </DifferencePanel>
      )}
      <div className="gpu-two">
        <section className="gpu-panel">
          <h2>Address space</h2>
          <AddressSpace
            device={device}
            tables={tables}
            palette={palette}
            moment={shownMoment}
            held={held}
            chosen={chosen}
            found={found}
            onChoose={setChosen}
          />
        </section>
        <section className="gpu-panel">
          <h2>Allocation</h2>
          <AllocationDetails device={device} tables={tables} row={chosen} onMoment={setMoment} />
        </section>
      </div>
      {sideBefore === null && (
        <section className="gpu-panel">
          <h2>By stack, at this moment</h2>
          <GpuFlame side={side} base={null} theme={theme} search={sought} />
        </section>
      )}
      <GpuAdvice summary={page.summary} />
    </main>
  );
}

/** `sought` lags behind `search` while the panels are drawn, so that typing stays responsive. */
function useSearch(tables: GpuPageDocument["tables"]) {
  const [search, setSearch] = useState("");
  const sought = useDeferredValue(search);
  const found = useMemo(() => searchStacks(tables, sought), [tables, sought]);
  return { search, setSearch, sought, found };
}

/** What the device holds at a moment, and at the moment it is compared with (null: none). */
function useSides(
  device: GpuPageDevice,
  tables: GpuPageDocument["tables"],
  { moment, base }: { moment: number; base: number | null },
) {
  const { replay } = device;
  const held = useMemo(() => heldAt(replay, moment), [replay, moment]);
  const heldBefore = useMemo(() => (base === null ? null : heldAt(replay, base)), [replay, base]);
  const side = useMemo(() => ({ ...device, tables, held }), [device, tables, held]);
  const sideBefore = useMemo(
    () => (heldBefore === null ? null : { ...device, tables, held: heldBefore }),
    [device, tables, heldBefore],
  );
  return { side, sideBefore };
}

interface SearchBarProps {
  device: GpuPageDevice;
  held: Uint32Array;
  found: Uint8Array | null;
  search: string;
  onSearch(search: string): void;
  children: ReactNode;
}

function SearchBar({ device, held, found, search, onSearch, children }: SearchBarProps) {
  const { replay } = device;
  const matching = useMemo(() => bytesFound(replay, held, found), [replay, held, found]);
  return (
    <div className="gpu-bar">
      <h2>Every allocation</h2>
      <input
        type="search"
        placeholder="Search a function or file"
        aria-label="Search"
        value={search}
        onChange={(event) => onSearch(event.target.value)}
      />
      {found !== null && <span className="gpu-found">{formatBytes(matching)} match</span>}
      {children}
    </div>
  );
}

interface ComparisonProps {
  base: number;
  moment: number;
  setBase(base: number | null): void;
}

function Comparison({ base, moment, setBase }: ComparisonProps) {
  return (
    <>
      <span className="gpu-hint">
        A event {formatCount(base)}, B event {formatCount(moment)}
      </span>
      <button type="button" className="button" onClick={() => setBase(moment)}>
        A is here
      </button>
      <button type="button" className="button" onClick={() => setBase(null)}>
        End comparison
      </button>
    </>
  );
}

/** Bytes held by stacks that match the search. */
function bytesFound(
  { allocations }: GpuReplay,
  held: Uint32Array,
  found: Uint8Array | null,
): number {
  if (found === null) {
    return 0;
  }
  let sum = 0;
  for (const row of held) {
    sum += found[uint32At(allocations.stack, row)] === 1 ? float64At(allocations.size, row) : 0;
  }
  return sum;
}

/** The advice, and what the snapshot does not show. */
function GpuAdvice({ summary }: { summary: Pick<GpuJson, "advice" | "limits"> }) {
  return (
    <section className="gpu-panel">
      <h2>{summary.advice.length > 0 ? "What to do" : "What the snapshot does not show"}</h2>
      <ul className="gpu-advice">
        {summary.advice.map(({ id, text }) => (
          <li key={id}>
            <b>{id}</b> {text}
          </li>
        ))}
        {summary.limits.map((limit) => (
          <li key={limit} className="limit">
            {limit}
          </li>
        ))}
      </ul>
    </section>
  );
}
