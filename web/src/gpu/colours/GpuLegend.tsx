/** The categories of device memory that occur, with their colours. */
import { useMemo } from "react";
import { GPU_CATEGORIES } from "../../../../src/model/documents/gpu/gpu_page.js";
import { categoryColour, type GpuPalette } from "./gpuColours.js";

interface Props {
  palette: GpuPalette;
  /** By allocation. */
  category: Uint8Array;
}

export function GpuLegend({ palette, category }: Props) {
  const present = useMemo(() => new Set(category), [category]);
  return (
    <span className="gpu-legend">
      {GPU_CATEGORIES.map(
        (name, number) =>
          present.has(number) && (
            <span key={name}>
              <i style={{ background: categoryColour(palette, number) }} />
              {name}
            </span>
          ),
      )}
    </span>
  );
}
