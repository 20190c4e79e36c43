/**
 * Validated figures of a program's own device allocators (from python/tidemark/_device_figures.py in another
 * process). null means that this version of the framework does not report the value.
 */
import type { Bytes } from "../../model/base/units.js";
import { HOST_MEMORY } from "../../model/gpu/gpu_snapshot.js";

type FrameworkName = "torch" | "jax" | "tensorflow";

/**
 * used: it uses a device. unused: it could use one but has not yet. cpu-only: this build or host has none.
 * failed: `detail` has the reason.
 */
type FrameworkState = "used" | "unused" | "cpu-only" | "failed";

export interface FrameworkFigures {
  readonly name: FrameworkName;
  readonly version: string;
  readonly state: FrameworkState;
  readonly detail: string;
  /** Allocator backend of torch: "native" or "cudaMallocAsync"; "" unknown. */
  readonly backend: string;
  readonly devices: readonly DeviceFigures[];
  /** Page-locked host memory: what the allocator owns, and the part in use. */
  readonly pinned: { readonly ownedBytes: Bytes | null; readonly activeBytes: Bytes | null } | null;
}

const FIGURES = [
  "totalBytes",
  "freeBytes",
  "reservedBytes",
  "allocatedBytes",
  "activeBytes",
  "requestedBytes",
  "peakReservedBytes",
  "peakAllocatedBytes",
  "inactiveSplitBytes",
  "inactiveSplitBlocks",
  "allocationRetries",
  "outOfMemory",
  "splitBytes",
  "largestFreeBytes",
] as const;
type FigureName = (typeof FIGURES)[number];

/** `freeBytes` is the driver's figure for the whole device; `splitBytes` is free memory in segments in use. */
export type DeviceFigures = Readonly<Record<FigureName, number | null>> & {
  /** {@link HOST_MEMORY}: the allocator of the host. */
  readonly index: number;
  readonly name: string;
};

/** A segment of torch's allocator as listed by the program. */
export interface LiveSegment {
  readonly device: number;
  readonly address: number;
  readonly bytes: Bytes;
  readonly stream: number;
  /** "0,0": the common pool; "" unknown. */
  readonly pool: string;
  readonly type: string;
  readonly expandable: boolean;
  /** In address order; together they fill the segment. */
  readonly blocks: readonly LiveBlock[];
}

interface LiveBlock {
  readonly bytes: Bytes;
  readonly requestedBytes: Bytes;
  readonly state: "inactive" | "allocated" | "pending";
}

/** A JAX array as listed by the program; for an array on several devices, its part on the first one. */
export interface LiveArray {
  /** Address of the Python object. */
  readonly object: number;
  readonly device: number;
  readonly bytes: Bytes;
  readonly shape: readonly number[];
  readonly dtype: string;
}

/** splitBytes / reservedBytes: free memory that stays fragmented, excluding segments that PyTorch would release. */
export function fragmentationRatio({
  splitBytes,
  reservedBytes,
}: Pick<DeviceFigures, "splitBytes" | "reservedBytes">): number | null {
  return splitBytes === null || reservedBytes === null || reservedBytes === 0
    ? null
    : Math.min(1, splitBytes / reservedBytes);
}

const NAMES: readonly FrameworkName[] = ["torch", "jax", "tensorflow"];
const STATES: readonly string[] = ["used", "unused", "cpu-only", "failed"];
const MOST_DEVICES = 256;

/** Invalid values are left out. */
export function parseFigures(value: unknown): FrameworkFigures[] {
  return NAMES.flatMap((name) => {
    const about = recordOf(recordOf(value)?.[name]);
    if (about === null) {
      return [];
    }
    const pinned = recordOf(about.pinned);
    const state = STATES.includes(String(about.state)) ? String(about.state) : "failed";
    return [
      {
        name,
        version: textOf(about.version),
        state: state as FrameworkState,
        detail: textOf(about.detail),
        backend: textOf(about.backend),
        devices: listOf(about.devices).slice(0, MOST_DEVICES).flatMap(deviceOf),
        pinned: pinned && {
          ownedBytes: numberOf(pinned.ownedBytes),
          activeBytes: numberOf(pinned.activeBytes),
        },
      },
    ];
  });
}

/** Only for torch; null if the figures were requested without segments. */
export function parseSegments(value: unknown): LiveSegment[] | null {
  const segments = recordOf(recordOf(value)?.torch)?.segments;
  return Array.isArray(segments) ? segments.flatMap(segmentOf) : null;
}

/** Largest first; empty if JAX listed none. */
export function parseArrays(value: unknown): LiveArray[] {
  return listOf(recordOf(recordOf(value)?.jax)?.arrays).flatMap((row) => {
    const [object, device, bytes, shape, dtype] = listOf(row);
    const numbers = { object: numberOf(object), device: numberOf(device), bytes: numberOf(bytes) };
    if (!areNumbers(numbers)) {
      return [];
    }
    const sizes = listOf(shape).flatMap((size) => numberOf(size) ?? []);
    return [{ ...numbers, shape: sizes, dtype: textOf(dtype) }];
  });
}

function deviceOf(value: unknown): DeviceFigures[] {
  const device = recordOf(value);
  const index = device?.index === HOST_MEMORY ? HOST_MEMORY : numberOf(device?.index);
  if (device === null || index === null) {
    return [];
  }
  const figures = Object.fromEntries(FIGURES.map((name) => [name, numberOf(device[name])]));
  return [{ index, name: textOf(device.name), ...(figures as Record<FigureName, number | null>) }];
}

function areNumbers<Name extends string>(
  figures: Record<Name, number | null>,
): figures is Record<Name, number> {
  return !Object.values(figures).includes(null);
}

function segmentOf(value: unknown): LiveSegment[] {
  if (!Array.isArray(value)) {
    return [];
  }
  const [device, address, bytes, stream, pool, type, expandable, blocks] = value;
  const numbers = {
    device: numberOf(device),
    address: numberOf(address),
    bytes: numberOf(bytes),
    stream: numberOf(stream),
  };
  if (!areNumbers(numbers)) {
    return [];
  }
  return [
    {
      ...numbers,
      pool: listOf(pool).map(Number).join(","),
      type: textOf(type),
      expandable: expandable === true,
      blocks: listOf(blocks).flatMap(blockOf),
    },
  ];
}

/** torch's states are "active_allocated", "active_pending_free" ("active_awaiting_free"), "inactive". */
function blockOf(value: unknown): LiveBlock[] {
  const [size, asked, state] = listOf(value);
  const bytes = numberOf(size);
  if (bytes === null) {
    return [];
  }
  const word = textOf(state);
  return [
    {
      bytes,
      requestedBytes: numberOf(asked) ?? bytes,
      state:
        word === "active_allocated" ? "allocated" : word === "inactive" ? "inactive" : "pending",
    },
  ];
}

function recordOf(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value.slice(0, 400) : "";
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null;
}
