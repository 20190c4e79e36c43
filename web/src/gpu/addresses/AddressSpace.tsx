/** Segments, blocks and gaps of the chosen moment. */

import { useLayoutEffect, useMemo, useRef, useState } from "react";
import { float64At, itemAt, uint8At, uint32At } from "../../../../src/model/base/columns.js";
import { present } from "../../../../src/model/base/present.js";
import type {
  GpuPageDevice,
  GpuPageDocument,
} from "../../../../src/model/documents/gpu/gpu_page.js";
import type { Span } from "../../../../src/model/gpu/gpu_replay.js";
import { formatBytes } from "../../format/numbers.js";
import { useWidth } from "../../widgets/useWidth.js";
import { colourOf, type GpuPalette } from "../colours/gpuColours.js";
import {
  type AddressBox,
  type AddressGroup,
  type AddressLayout,
  LINE,
  layOutAddresses,
  NAME_LINE,
} from "./addressLayout.js";

/** Height in pixels of the mark below a segment that shows its pool. */
const FOOT = 3;

interface Props {
  device: GpuPageDevice;
  tables: GpuPageDocument["tables"];
  palette: GpuPalette;
  moment: number;
  /** Rows of the allocations of that moment, by address. */
  held: Uint32Array;
  chosen: number;
  found: Uint8Array | null;
  onChoose(allocation: number): void;
}

export function AddressSpace(props: Props) {
  const { device, tables, palette, moment, held, chosen, found, onChoose } = props;
  const { replay } = device;
  const [holder, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState<AddressBox | null>(null);
  const layout = useMemo(
    () => layOutAddresses(replay, moment, held, width),
    [replay, moment, held, width],
  );
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) {
      return;
    }
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, width, layout.height + FOOT);
    drawAddresses(context, layout, { device, tables, palette, chosen, found });
  }, [layout, width, palette, device, chosen, found, tables]);
  const under = (event: React.MouseEvent): AddressBox | null => {
    const box = present(canvas.current).getBoundingClientRect();
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
        width={Math.max(1, Math.round(width * devicePixelRatio))}
        height={Math.round((layout.height + FOOT) * devicePixelRatio)}
        style={{ width, height: layout.height + FOOT }}
        aria-label="Address space"
        onMouseMove={(event) => setHover(under(event))}
        onMouseLeave={() => setHover(null)}
        onClick={(event) => onChoose(under(event)?.allocation ?? -1)}
      />
      <p className="gpu-hint" aria-live="polite">
        {hover === null
          ? "The empty parts of a segment are free; a red underline marks a private pool."
          : describe(hover)}
      </p>
    </div>
  );

  function describe({ allocation, span }: AddressBox): string {
    const pool = tables.strings[span.pool] || "unknown";
    const segment = `${span.expandable ? "mapped part of an expandable segment" : "segment"} of ${formatBytes(span.size)} at 0x${span.address.toString(16)}, pool ${pool}, stream ${streamName(tables, span.stream)}`;
    return allocation < 0
      ? segment
      : `${formatBytes(float64At(replay.allocations.size, allocation))} at 0x${float64At(replay.allocations.address, allocation).toString(16)} in a ${segment}`;
  }
}

type Drawn = Pick<Props, "device" | "tables" | "palette" | "chosen" | "found">;

function drawAddresses(
  context: CanvasRenderingContext2D,
  { groups, boxes }: AddressLayout,
  { device, tables, palette, chosen, found }: Drawn,
): void {
  const style = getComputedStyle(document.documentElement);
  const [line, free, danger, ink] = ["--ink-3", "--line", "--danger", "--ink-2"].map((name) =>
    style.getPropertyValue(name).trim(),
  ) as [string, string, string, string];
  context.font = `12px ${style.fontFamily}`;
  context.textBaseline = "middle";
  context.fillStyle = ink;
  for (const group of groups) {
    context.fillText(groupName(tables, group), 0, group.y + NAME_LINE / 2);
  }
  const { category } = device;
  const { stack } = device.replay.allocations;
  for (const { x, y, width, allocation, span } of boxes) {
    if (allocation < 0) {
      context.fillStyle = free;
      context.fillRect(x, y, width, LINE);
      const common = isCommonPool(tables, span);
      context.fillStyle = common ? line : danger;
      context.fillRect(x, y + LINE, width, common ? 1 : FOOT);
      continue;
    }
    context.fillStyle =
      found === null
        ? itemAt(palette.css, colourOf(uint8At(category, allocation), uint32At(stack, allocation)))
        : found[uint32At(stack, allocation)] === 1
          ? palette.matchCss
          : palette.fadedCss;
    context.fillRect(x, y, Math.max(0.5, width - (width > 3 ? 1 : 0)), LINE);
    if (allocation === chosen) {
      context.strokeStyle = danger;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(2, width - 2), LINE - 2);
    }
  }
}

type Tables = GpuPageDocument["tables"];

function isCommonPool({ strings }: Tables, { pool }: Span): boolean {
  return /^$|^\[0, ?0\]$/.test(strings[pool] ?? "");
}

function streamName({ streams }: Tables, stream: number): string {
  const number = streams[stream] ?? 0;
  return number === 0 ? "default" : number < 4096 ? String(number) : `0x${number.toString(16)}`;
}

function groupName(tables: Tables, { span, size }: AddressGroup): string {
  const pool = isCommonPool(tables, span)
    ? "Common pool"
    : `Private pool ${(tables.strings[span.pool] ?? "").replace(/[[\]]/g, "")}`;
  return `${pool}, stream ${streamName(tables, span.stream)}: ${formatBytes(size)}`;
}
