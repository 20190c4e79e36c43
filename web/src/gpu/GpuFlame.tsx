/** What lived at the chosen moment, by stack. A click searches for that function. */
import { useMemo } from "react";
import type { GpuPageDevice, GpuPageDocument } from "../../../src/model/gpu_page.js";
import { formatBytes } from "../page/format.js";
import { flameOf } from "./gpuFlame.js";
import { nameOf, placeOf } from "./stackNames.js";

const ROW = 19;

interface Props {
  device: GpuPageDevice;
  tables: GpuPageDocument["tables"];
  moment: number;
  search: string;
  onSearch(text: string): void;
}

export function GpuFlame({ device, tables, moment, search, onSearch }: Props) {
  const boxes = useMemo(() => flameOf(tables, device.replay, moment), [tables, device, moment]);
  const rows = boxes.reduce((deepest, { depth }) => Math.max(deepest, depth + 1), 1);
  const wanted = search.trim().toLowerCase();
  return (
    <div className="gpu-flame" style={{ height: rows * ROW }}>
      {boxes.map(({ depth, from, to, frame, bytes }) => {
        const name = frame < 0 ? "(no stack recorded)" : nameOf(tables, frame);
        const place = frame < 0 ? "" : placeOf(tables, frame);
        const hit = wanted !== "" && `${name} ${place}`.toLowerCase().includes(wanted);
        return (
          <button
            type="button"
            key={`${depth} ${from}`}
            className={`${/\.py:/.test(place) ? "python" : "native"}${hit ? " hit" : ""}`}
            style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%`, top: depth * ROW }}
            title={`${name}\n${place}\n${formatBytes(bytes)}`}
            onClick={() => onSearch(name)}
          >
            {name}
          </button>
        );
      })}
    </div>
  );
}
