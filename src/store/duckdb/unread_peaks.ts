/**
 * Peaks between two readings of a tree's RSS. The kernel keeps the highest RSS of each process (its mark), so a mark that has
 * risen since the reading before shows a peak that is in no reading. It is stored as a metric of the recorded program,
 * {@link UNREAD_PEAK}, at the time of the reading that shows it.
 *
 * A mark covers one process, so the peak of several processes is larger than what is stored. The first mark of a process
 * that began before its recording may be of any time before, so it shows nothing.
 */
import type { Bytes, TimeMs } from "../../model/base/units.js";

export const UNREAD_PEAK = "unreadPeakBytes";

/** The kernel updates RSS and its highest value in batches of pages for each thread. */
const LAG_BYTES: Bytes = 1 << 20;
/** Clocks differ slightly, and a recording begins a moment after its program. */
const SLACK_MS = 2000;

/** A reading of a metric, one of {@link READ}. */
export interface MarkReading {
  /** Equal for readings of the same process. */
  readonly process: number;
  readonly startedMs: TimeMs;
  readonly timeMs: TimeMs;
  readonly metric: string;
  readonly bytes: Bytes;
}

export interface UnreadPeak {
  readonly timeMs: TimeMs;
  readonly bytes: Bytes;
}

const READ: ReadonlySet<string> = new Set(["treeRssBytes", "vmHwmBytes"]);

export function showsPeaks(metric: string): boolean {
  return READ.has(metric);
}

/** The state of one recording; readings arrive in order. */
export class UnreadPeaks {
  readonly #recordedMs: TimeMs;
  readonly #marks = new Map<number, Bytes>();
  /** The tree's last reading. */
  #tree: Bytes = 0;
  #highest: Bytes = 0;

  constructor(recordedMs: TimeMs) {
    this.#recordedMs = recordedMs;
  }

  /** The peaks that these readings show. */
  after(readings: readonly MarkReading[]): UnreadPeak[] {
    const peaks: UnreadPeak[] = [];
    let risen: UnreadPeak[] = [];
    const decide = (read: Bytes) => {
      peaks.push(...risen.filter(({ bytes }) => bytes > read + LAG_BYTES));
      risen = [];
    };
    for (const { process, startedMs, timeMs, metric, bytes } of readings) {
      this.#highest = Math.max(this.#highest, bytes);
      if (metric === "treeRssBytes") {
        decide(Math.max(this.#tree, bytes));
        this.#tree = bytes;
        continue;
      }
      const isRecordedFromItsStart = startedMs >= this.#recordedMs - SLACK_MS;
      const before = this.#marks.get(process) ?? (isRecordedFromItsStart ? 0 : bytes);
      if (bytes > before) {
        risen.push({ timeMs, bytes });
      }
      this.#marks.set(process, bytes);
    }
    decide(this.#tree);
    return peaks;
  }

  /** The peak that only the end shows. `maxRssBytes`: as the kernel reports it; 0: unknown. */
  atEnd({ timeMs, maxRssBytes }: { timeMs: TimeMs; maxRssBytes: Bytes }): UnreadPeak[] {
    // After a restart of the server, nothing is known of what was read before.
    const isUnread = this.#highest > 0 && maxRssBytes > this.#highest + LAG_BYTES;
    return isUnread ? [{ timeMs, bytes: maxRssBytes }] : [];
  }
}
