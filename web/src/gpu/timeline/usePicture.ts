/** Draws every allocation over the visible moments, pixel by pixel, into a canvas. */

import { useLayoutEffect, useMemo, useRef } from "react";
import { uint8At, uint32At } from "../../../../src/model/base/columns.js";
import type { GpuPageDevice } from "../../../../src/model/documents/gpu/gpu_page.js";
import { colourOf, type GpuPalette } from "../colours/gpuColours.js";
import {
  allocationAt,
  coloursOf,
  columnMoments,
  drawAllocations,
  type TimelineView,
} from "./timelineLayout.js";
import type { DeviceShape } from "./useDeviceShape.js";

/** Most columns; more pixels would take too long to draw on high-resolution screens. */
const MOST_COLUMNS = 1600;

export interface Pictured {
  device: GpuPageDevice;
  shape: DeviceShape;
  palette: GpuPalette;
  /** CSS pixels. */
  height: number;
  /** Bytes at the upper edge. */
  top: number;
  /** For each stack: false if the search excludes it; null without a search. */
  found: Uint8Array | null;
}

interface Frame {
  /** CSS pixels. */
  width: number;
  /** Moments at the left and the right edge. */
  from: number;
  to: number;
}

export function usePicture(pictured: Pictured, { width, from, to }: Frame) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { device, shape, palette, height, top, found } = pictured;
  const { replay, category } = device;
  const finer = width * devicePixelRatio <= MOST_COLUMNS ? Math.min(2, devicePixelRatio) : 1;
  const view: TimelineView = useMemo(
    () => ({
      from,
      to,
      width: Math.max(1, Math.round(width * finer)),
      height: Math.round(height * finer),
      top,
    }),
    [from, to, width, finer, height, top],
  );
  const moments = useMemo(() => columnMoments(shape.heights, view), [shape, view]);
  const colours = useMemo(() => {
    const { stack } = replay.allocations;
    return coloursOf(shape.stacked, (row) =>
      found === null
        ? uint32At(palette.pixels, colourOf(uint8At(category, row), uint32At(stack, row)))
        : found[uint32At(stack, row)] === 1
          ? palette.match
          : palette.faded,
    );
  }, [replay, shape, category, palette, found]);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || width === 0) {
      return;
    }
    const startedMs = performance.now();
    const image = context.createImageData(view.width, view.height);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(palette.background);
    drawAllocations({ stacked: shape.stacked, colours }, moments, view, pixels);
    context.putImageData(image, 0, 0);
    // Read by the bench: how long drawing took.
    context.canvas.dataset.drawMs = (performance.now() - startedMs).toFixed(2);
  }, [shape, colours, moments, view, palette, width]);

  /** The moment and the allocation (-1: none) at a position in CSS pixels. */
  const rowUnder = (x: number, y: number) => {
    const at = moments[Math.min(moments.length - 1, Math.floor(x * finer))] ?? 0;
    return { at, row: allocationAt(shape.stacked, at, (1 - y / height) * top) };
  };
  return { canvas, view, rowUnder };
}
