import { LEDGER_PARTS, type LedgerPartName } from "./ledger.js";
import type { Pid, TimeMs } from "./units.js";

/** What the recorder reads of a process at its polls. Bytes unless the name says otherwise.
 * The names are the recording's and the store's: a metric is stored under exactly this name. */
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
  "liveBytes",
  "liveObjects",
  "allocatedBytes",
  "allocatedObjects",
  "periodBytes",
  "treeRssBytes",
  "treePssBytes",
  "children",
  "shmUsedBytes",
  "cgroupUsageBytes",
  "cgroupLimitBytes",
  "cgroupOomKills",
  "cgroupHighEvents",
  "cgroupMaxEvents",
] as const;

/** A part of the process's ledger: bytes of RSS, read at a growing distance. */
export type LedgerMetric = `ledger.${LedgerPartName}`;
export type Metric = (typeof POLLED)[number] | LedgerMetric;
export const LEDGER_METRICS: readonly LedgerMetric[] = LEDGER_PARTS.map(ledgerMetric);
export const METRICS: readonly Metric[] = [...POLLED, ...LEDGER_METRICS];

export function ledgerMetric(part: LedgerPartName): LedgerMetric {
  return `ledger.${part}`;
}

/** One process's figures over time: columns of equal length. NaN stands for "not read at this poll"
 * (dear figures such as PSS are read at a growing distance). Never written to JSON. */
export interface MemorySeries {
  readonly pid: Pid;
  readonly timesMs: Float64Array;
  readonly values: ReadonlyMap<Metric, Float64Array>;
}

/** Something that happened at a moment: shown as a mark on the timeline. */
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
    | "limit";
  /** A few words for people: the step's name, the exit status, what was lost. */
  readonly detail: string;
  /** Step number, signal, new period...; absent where the kind has none. */
  readonly value?: number;
}
