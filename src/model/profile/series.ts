import type { Pid, TimeMs } from "../base/units.js";
import { LEDGER_PARTS, type LedgerPartName } from "./ledger.js";

/** Metrics that the recorder reads of a process at its polls. Bytes unless the name says otherwise.
 * The names are the recording's and the store's: a metric is stored under exactly this name.
 * `cgroupHighBytes`: `memory.high` of a control group of version 2, above which its processes are throttled.
 * `memoryWaitShare`: part of the last ten seconds in which a process of the control group waited for memory, 0 to 1.
 * `endedChildren`: children that have ended and were not waited for (zombies).
 * `deviceBytes`: on all devices, as the driver counts it.
 * `requestsPerSecond`: since the reading before, where the program counts its requests (linux/memory/request_count.ts). */
const POLLED = [
  "rssBytes",
  "anonRssBytes",
  "fileRssBytes",
  "shmemRssBytes",
  "pssBytes",
  "ussBytes",
  "swapBytes",
  "vmsBytes",
  "vmPeakBytes",
  "vmHwmBytes",
  "vmDataBytes",
  "threads",
  "openFiles",
  "openSockets",
  "endedChildren",
  "liveBytes",
  "liveObjects",
  "allocatedBytes",
  "allocatedObjects",
  "periodBytes",
  "treeRssBytes",
  "treePssBytes",
  "children",
  "shmUsedBytes",
  "writtenBytes",
  "cgroupUsageBytes",
  "cgroupLimitBytes",
  "cgroupHighBytes",
  "cgroupOomKills",
  "cgroupHighEvents",
  "cgroupMaxEvents",
  "memoryWaitShare",
  "deviceBytes",
  "requestsPerSecond",
] as const;

/** Metrics of a process's device allocators, by device: bytes, shares and counts as in `tidemark gpu PID`. */
export const DEVICE_FIGURES = [
  "totalBytes",
  "freeBytes",
  "reservedBytes",
  "allocatedBytes",
  "activeBytes",
  "peakReservedBytes",
  "peakAllocatedBytes",
  "splitBytes",
  "largestFreeBytes",
  "fragmentationRatio",
  "inactiveSplitBlocks",
  "allocationRetries",
  "outOfMemory",
] as const;
export type DeviceFigureName = (typeof DEVICE_FIGURES)[number];
/** Most devices of one process in a recording. */
export const MOST_DEVICES = 16;
/** `gpu.pinnedBytes` is page-locked host memory of the device's allocator. */
type DeviceMetric = `gpu.${number}.${DeviceFigureName}` | "gpu.pinnedBytes";
const DEVICE_METRICS: readonly DeviceMetric[] = [
  "gpu.pinnedBytes",
  ...Array.from({ length: MOST_DEVICES }, (_, device) =>
    DEVICE_FIGURES.map((figure) => deviceMetric(device, figure)),
  ).flat(),
];

export function deviceMetric(device: number, figure: DeviceFigureName): DeviceMetric {
  return `gpu.${device}.${figure}`;
}

/** A part of the process's ledger: bytes of RSS, read at growing intervals. */
type LedgerMetric = `ledger.${LedgerPartName}`;
export type Metric = (typeof POLLED)[number] | LedgerMetric | DeviceMetric;
export const LEDGER_METRICS: readonly LedgerMetric[] = LEDGER_PARTS.map(ledgerMetric);
export const METRICS: readonly Metric[] = [...POLLED, ...LEDGER_METRICS, ...DEVICE_METRICS];

export function ledgerMetric(part: LedgerPartName): LedgerMetric {
  return `ledger.${part}`;
}

/** One process's figures over time: columns of equal length. NaN stands for "not read at this poll"
 * (expensive metrics such as PSS are read at growing intervals). Never written to JSON. */
export interface MemorySeries {
  readonly pid: Pid;
  readonly timesMs: Float64Array;
  readonly values: ReadonlyMap<Metric, Float64Array>;
}

/** An event at a moment, shown as a mark on the timeline. */
export interface TimelineEvent {
  readonly timeMs: TimeMs;
  readonly pid: Pid;
  readonly kind:
    | "process-start"
    | "process-end"
    | "exec"
    | "step-begin"
    | "step-end"
    | "label"
    | "period"
    | "oom-kill"
    | "peak"
    | "recorder"
    | "gpu-snapshot"
    | "limit";
  /** A short readable text: the step's name, the exit status, what was lost. */
  readonly detail: string;
  /** Step number, signal, new period...; absent if the kind has none. */
  readonly value?: number;
}
