/** Data of the page of a device's snapshot, written by the CLI into one HTML file. */

import type { GpuReplay } from "../../gpu/gpu_replay.js";
import type { GpuSnapshot } from "../../gpu/gpu_snapshot.js";
import type { GpuJson } from "./gpu_document.js";

/** A device's moments; `action` and `timeUs` belong to its events. */
export interface GpuPageDevice {
  readonly replay: GpuReplay;
  readonly action: Uint8Array;
  readonly timeUs: Float64Array;
  /** For each allocation: row of GPU_CATEGORIES. */
  readonly category: Uint8Array;
}

/** `tidemark.gpuPage/1`. Encoded with {@link ./columns.ts}. */
export interface GpuPageDocument {
  readonly schema: "tidemark.gpuPage/1";
  /** Name of the snapshot. */
  readonly title: string;
  readonly summary: GpuJson;
  readonly tables: Pick<GpuSnapshot, "strings" | "frames" | "stacks" | "streams">;
  readonly devices: readonly GpuPageDevice[];
}

/** `tidemark.gpuDiffPage/1`: two snapshots on one axis. Encoded with {@link ./columns.ts}. */
export interface GpuDiffPageDocument {
  readonly schema: "tidemark.gpuDiffPage/1";
  readonly title: string;
  readonly a: GpuPageDocument;
  readonly b: GpuPageDocument;
}

export const GPU_PAGE_SCHEMA = "tidemark.gpuPage/1";
export const GPU_DIFF_PAGE_SCHEMA = "tidemark.gpuDiffPage/1";

export const GPU_CATEGORIES = [
  "unknown",
  "parameters",
  "gradients",
  "optimizer state",
  "activations",
  "kv cache",
  "temporaries",
  "workspace",
  "communication",
] as const;
