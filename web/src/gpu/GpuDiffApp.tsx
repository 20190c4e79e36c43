/** The page of two snapshots: both timelines on one axis, and what differs between a moment of each. */

import { useDeferredValue, useMemo, useState } from "react";
import { itemAt } from "../../../src/model/base/columns.js";
import type {
  GpuDiffPageDocument,
  GpuPageDocument,
} from "../../../src/model/documents/gpu/gpu_page.js";
import { heldAt } from "../../../src/model/gpu/gpu_replay.js";
import { type Theme, useTheme } from "../theme/theme.js";
import { GpuLegend } from "./colours/GpuLegend.js";
import { type GpuPalette, gpuPalette } from "./colours/gpuColours.js";
import { HEADROOM } from "./GpuApp.js";
import { DeviceChoice, GpuHead } from "./GpuHead.js";
import { MomentBar } from "./MomentBar.js";
import { DifferencePanel } from "./stacks/DifferencePanel.js";
import { searchStacks } from "./stacks/stackNames.js";
import { GpuTimeline } from "./timeline/GpuTimeline.js";
import { type DeviceShape, useDeviceShape } from "./timeline/useDeviceShape.js";

const TIMELINE_HEIGHT = 190;

export function GpuDiffApp({ page }: { page: GpuDiffPageDocument }) {
  const [theme, toggleTheme] = useTheme();
  const [shown, setShown] = useState(0);
  const both = useMemo(() => devicesOfBoth(page), [page]);
  const device = both[shown];
  return (
    <>
      <GpuHead title={page.title} theme={theme} toggleTheme={toggleTheme}>
        <DeviceChoice devices={both} shown={shown} choose={setShown} />
      </GpuHead>
      {device === undefined ? (
        <p className="gpu-hint">The two snapshots have no device in common.</p>
      ) : (
        <DeviceDifference key={device} page={page} device={device} theme={theme} />
      )}
    </>
  );
}

function devicesOfBoth({ a, b }: GpuDiffPageDocument): number[] {
  const ofB = new Set(b.devices.map(({ replay }) => replay.device));
  return a.devices.map(({ replay }) => replay.device).filter((device) => ofB.has(device));
}

function DeviceDifference({
  page: { a, b },
  device,
  theme,
}: {
  page: GpuDiffPageDocument;
  device: number;
  theme: Theme;
}) {
  const [search, setSearch] = useState("");
  const sought = useDeferredValue(search);
  const palette = useMemo(() => gpuPalette(theme), [theme]);
  const before = useSide(a, device, sought);
  const after = useSide(b, device, sought);
  const top = Math.max(before.shape.highest, after.shape.highest) * HEADROOM;
  return (
    <main className="gpu-page">
      {(
        [
          ["A", a, before],
          ["B", b, after],
        ] as const
      ).map(([letter, page, side]) => (
        <section className="gpu-panel" key={letter} aria-label={letter}>
          <div className="gpu-bar">
            <h2>
              {letter} <span className="gpu-file">{page.title}</span>
            </h2>
            {letter === "A" && (
              <input
                type="search"
                placeholder="Search a function or file"
                aria-label="Search"
                value={search}
                onChange={(event) => setSearch(event.target.value)}
              />
            )}
            <GpuLegend palette={palette} category={side.device.category} />
          </div>
          <SideTimeline side={side} palette={palette} top={top} />
        </section>
      ))}
      <DifferencePanel
        before={before.held}
        after={after.held}
        theme={theme}
        search={sought}
        onSearch={setSearch}
      >
        <button
          type="button"
          className="button"
          onClick={() => moveBoth(({ replay }) => replay.events)}
        >
          Both ends
        </button>
        <button
          type="button"
          className="button"
          onClick={() => moveBoth((_, { peak }) => peak.eventIndex)}
        >
          Both peaks
        </button>
      </DifferencePanel>
    </main>
  );

  function moveBoth(
    to: (device: TimelineSide["device"], summary: TimelineSide["summary"]) => number,
  ) {
    for (const side of [before, after]) {
      side.setMoment(to(side.device, side.summary));
    }
  }
}

type TimelineSide = ReturnType<typeof useSide>;

/** One file's device and its moment: at first its end, as in the list of `tidemark gpu A B`. */
function useSide(page: GpuPageDocument, number: number, search: string) {
  const row = page.devices.findIndex(({ replay }) => replay.device === number);
  const device = itemAt(page.devices, row);
  const { tables } = page;
  const [moment, setMoment] = useState(device.replay.events);
  const shown = useDeferredValue(moment);
  const shape: DeviceShape = useDeviceShape(device);
  const held = useMemo(
    () => ({ ...device, tables, held: heldAt(device.replay, shown) }),
    [device, tables, shown],
  );
  const found = useMemo(() => searchStacks(tables, search), [tables, search]);
  return {
    device,
    summary: itemAt(page.summary.devices, row),
    shape,
    moment,
    setMoment,
    held,
    found,
  };
}

function SideTimeline({
  side,
  palette,
  top,
}: {
  side: TimelineSide;
  palette: GpuPalette;
  top: number;
}) {
  const { device, summary, shape, moment, setMoment, found } = side;
  return (
    <>
      <GpuTimeline
        device={device}
        shape={shape}
        summary={summary}
        palette={palette}
        height={TIMELINE_HEIGHT}
        top={top}
        moment={moment}
        base={null}
        found={found}
        onMoment={setMoment}
        onChoose={() => undefined}
      />
      <MomentBar device={device} summary={summary} moment={moment} onMoment={setMoment} />
    </>
  );
}
