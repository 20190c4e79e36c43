/** Segments, blocks and gaps of the chosen moment. */
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import type { GpuPageDevice, GpuPageDocument } from "../../../src/model/gpu_page.js";
import { formatBytes } from "../page/format.js";
import { type AddressBox, LINE, layOutAddresses } from "./addressLayout.js";
import { colourOf, type GpuPalette } from "./gpuColours.js";
import { useWidth } from "./useWidth.js";

interface Props {
  device: GpuPageDevice;
  tables: GpuPageDocument["tables"];
  palette: GpuPalette;
  moment: number;
  chosen: number;
  found: Uint8Array | null;
  onChoose(allocation: number): void;
}

export function AddressSpace({ device, tables, palette, moment, chosen, found, onChoose }: Props) {
  const { replay, category } = device;
  const [holder, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState<AddressBox | null>(null);
  const layout = useMemo(() => layOutAddresses(replay, moment, width), [replay, moment, width]);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const style = getComputedStyle(document.documentElement);
    const [line, grid, danger, faded] = ["--line", "--grid", "--danger", "--grid"].map((name) =>
      style.getPropertyValue(name).trim(),
    ) as [string, string, string, string];
    context.clearRect(0, 0, width, layout.height);
    const { stack } = replay.allocations;
    for (const { x, y, width: wide, allocation, span } of layout.boxes) {
      if (allocation < 0) {
        context.fillStyle = grid;
        context.fillRect(x, y, wide, LINE);
        const common = /^$|^\[0, ?0\]$/.test(tables.strings[span.pool] ?? "");
        context.fillStyle = common ? line : danger;
        context.fillRect(x, y + LINE, wide, common ? 1 : 3);
        continue;
      }
      const hidden = found !== null && found[stack[allocation]!] === 0;
      context.fillStyle = hidden
        ? faded
        : palette.css[colourOf(category[allocation]!, stack[allocation]!)]!;
      context.fillRect(x, y, Math.max(0.5, wide - (wide > 3 ? 1 : 0)), LINE);
      if (allocation === chosen) {
        context.strokeStyle = danger;
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, Math.max(2, wide - 2), LINE - 2);
      }
    }
  }, [layout, width, palette, replay, category, chosen, found, tables]);
  const under = (event: React.MouseEvent): AddressBox | null => {
    const box = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const inside = layout.boxes.filter(
      (one) => x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + LINE,
    );
    return inside.find(({ allocation }) => allocation >= 0) ?? inside[0] ?? null;
  };
  return (
    <div ref={holder} className="gpu-addresses">
      <canvas
        ref={canvas}
        width={Math.max(1, width)}
        height={layout.height + 3}
        aria-label="Address space"
        onMouseMove={(event) => setHover(under(event))}
        onMouseLeave={() => setHover(null)}
        onClick={(event) => onChoose(under(event)?.allocation ?? -1)}
      />
      <p className="gpu-hint" aria-live="polite">
        {hover === null
          ? "Grey is free within a segment; a red foot is a private pool."
          : describe(hover)}
      </p>
    </div>
  );

  function describe({ allocation, span }: AddressBox): string {
    const pool = tables.strings[span.pool] || "unknown pool";
    const segment = `segment of ${formatBytes(span.size)} at 0x${span.address.toString(16)}, pool ${pool}, stream ${tables.streams[span.stream] ?? 0}${span.expandable ? ", expandable" : ""}`;
    return allocation < 0
      ? segment
      : `${formatBytes(replay.allocations.size[allocation]!)} at 0x${replay.allocations.address[allocation]!.toString(16)} in a ${segment}`;
  }
}
