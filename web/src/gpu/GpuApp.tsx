/** The page of a device's snapshot: timeline, address space, flame graph and details of one moment. */
import { useMemo, useState } from "react";
import { GPU_CATEGORIES, type GpuPageDocument } from "../../../src/model/gpu_page.js";
import { formatBytes, formatCount } from "../page/format.js";
import { useTheme } from "../page/theme.js";
import { AddressSpace } from "./AddressSpace.js";
import { AllocationDetails } from "./AllocationDetails.js";
import { GpuFlame } from "./GpuFlame.js";
import { GpuTimeline } from "./GpuTimeline.js";
import { gpuPalette } from "./gpuColours.js";
import { searchStacks } from "./stackNames.js";

export function GpuApp({ page }: { page: GpuPageDocument }) {
  const [theme, toggleTheme] = useTheme();
  const [shown, setShown] = useState(0);
  const device = page.devices[shown];
  return (
    <>
      <header className="gpu-head">
        <h1>{page.title}</h1>
        {page.devices.length > 1 && (
          <label>
            Device{" "}
            <select value={shown} onChange={(event) => setShown(Number(event.target.value))}>
              {page.devices.map(({ replay }, row) => (
                <option key={replay.device} value={row}>
                  {replay.device}
                </option>
              ))}
            </select>
          </label>
        )}
        <button type="button" onClick={toggleTheme}>
          {theme === "dark" ? "Light" : "Dark"}
        </button>
      </header>
      {device === undefined ? (
        <p className="gpu-hint">{page.summary.limits[0]}</p>
      ) : (
        <DevicePage key={shown} page={page} row={shown} theme={theme} />
      )}
    </>
  );
}

function DevicePage({
  page,
  row,
  theme,
}: {
  page: GpuPageDocument;
  row: number;
  theme: "light" | "dark";
}) {
  const device = page.devices[row]!;
  const summary = page.summary.devices[row]!;
  const { replay } = device;
  const [moment, setMoment] = useState(summary.peak.eventIndex);
  const [chosen, setChosen] = useState(-1);
  const [search, setSearch] = useState("");
  const palette = useMemo(() => gpuPalette(theme), [theme]);
  const found = useMemo(() => searchStacks(page.tables, search), [page, search]);
  const matching = useMemo(() => sumFound(page, row, moment, found), [page, row, moment, found]);
  const parts = { device, tables: page.tables, palette, moment, chosen, found };
  return (
    <main className="gpu-page">
      <section className="gpu-figures">
        <Figure
          name="Reserved"
          bytes={summary.end.reservedBytes}
          note={`highest ${formatBytes(summary.highestReservedBytes)}`}
        />
        <Figure name="Allocated" bytes={summary.end.allocatedBytes} note="at the end" />
        <Figure
          name="Requested"
          bytes={summary.end.requestedBytes}
          note={`peak ${formatBytes(summary.peak.requestedBytes)}`}
        />
        <Figure name="Split" bytes={summary.waste.splitBytes} note="free, between blocks in use" />
        <Figure name="Cached" bytes={summary.waste.cachedBytes} note="free, whole segments" />
      </section>
      <section className="gpu-panel">
        <div className="gpu-bar">
          <h2>Every allocation</h2>
          <input
            type="search"
            placeholder="Search a function or file"
            aria-label="Search"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
          {found !== null && <span className="gpu-found">{formatBytes(matching)} match</span>}
          <span className="gpu-legend">
            {GPU_CATEGORIES.map((name, category) => (
              <span key={name}>
                <i style={{ background: palette.css[category * 6 + 2] }} />
                {name}
              </span>
            ))}
          </span>
        </div>
        <GpuTimeline {...parts} summary={summary} onMoment={setMoment} onChoose={setChosen} />
        <div className="gpu-scrubber">
          <input
            type="range"
            aria-label="Moment of the trace"
            min={0}
            max={replay.events}
            value={moment}
            onChange={(event) => setMoment(Number(event.target.value))}
          />
          <output>
            event {formatCount(moment)} of {formatCount(replay.events)}:{" "}
            {formatBytes(replay.requested[moment]!)} requested,{" "}
            {formatBytes(replay.reserved[moment]!)} reserved
          </output>
          <button type="button" onClick={() => setMoment(summary.peak.eventIndex)}>
            Peak
          </button>
          {summary.outOfMemory.map(({ eventIndex }) => (
            <button type="button" key={eventIndex} onClick={() => setMoment(eventIndex)}>
              Out of memory
            </button>
          ))}
          <button type="button" onClick={() => setMoment(replay.events)}>
            End
          </button>
        </div>
      </section>
      <div className="gpu-two">
        <section className="gpu-panel">
          <h2>Address space</h2>
          <AddressSpace {...parts} onChoose={setChosen} />
        </section>
        <section className="gpu-panel">
          <h2>Allocation</h2>
          <AllocationDetails device={device} tables={page.tables} row={chosen} />
        </section>
      </div>
      <section className="gpu-panel">
        <h2>By stack, at this moment</h2>
        <GpuFlame
          device={device}
          tables={page.tables}
          moment={moment}
          search={search}
          onSearch={setSearch}
        />
      </section>
      <section className="gpu-panel">
        <h2>What to do</h2>
        <ul className="gpu-advice">
          {page.summary.advice.map(({ id, text }) => (
            <li key={id}>
              <b>{id}</b> {text}
            </li>
          ))}
          {page.summary.limits.map((limit) => (
            <li key={limit} className="limit">
              {limit}
            </li>
          ))}
        </ul>
      </section>
    </main>
  );
}

/** Bytes held at a moment by stacks that were found. */
function sumFound(
  page: GpuPageDocument,
  row: number,
  moment: number,
  found: Uint8Array | null,
): number {
  if (found === null) return 0;
  const { start, end, size, stack, length } = page.devices[row]!.replay.allocations;
  let sum = 0;
  for (let one = 0; one < length; one++) {
    if (found[stack[one]!] === 1 && start[one]! < moment && moment <= end[one]!) sum += size[one]!;
  }
  return sum;
}

function Figure({ name, bytes, note }: { name: string; bytes: number; note: string }) {
  return (
    <div>
      <span>{name}</span>
      <b>{formatBytes(bytes)}</b>
      <small>{note}</small>
    </div>
  );
}
