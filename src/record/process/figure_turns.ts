/**
 * When the figures of a process are read: at each poll while they change, otherwise more and more rarely.
 *
 *     poll    1     2     3     4     5     6     7     8     9 ...
 *     read    all   all   rss   all   rss   rss   rss   all   rss ...     nothing changes: at most MOST_POLLS apart
 *     read    all   all   rss   ALL   all   rss   all ...                 RSS, threads or mappings changed before the fourth
 *
 * RSS itself is read at every poll.
 */
import type { ProcessStat } from "../../linux/index.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import type { Metric } from "../../model/profile/series.js";

/** Between two polls that read all figures, if RSS stays the same. */
const MOST_POLLS = 5;
const LONGEST_MS: Millis = 100_000;
/** Read only at expensive polls. */
const RARE: ReadonlySet<Metric> = new Set(["pssBytes", "ussBytes", "openSockets"]);

type Figures = ReadonlyMap<Metric, number>;

export class FigureTurns {
  #stat: ProcessStat | null = null;
  #figures: Figures = new Map();
  #readMs: Millis = Number.NEGATIVE_INFINITY;
  #distance = 1;
  #polls = 0;

  /** `stat`, `rssBytes`: as this poll has read them. Called once for each poll. */
  isDue(stat: ProcessStat, rssBytes: Bytes | null, nowMs: Millis): boolean {
    this.#polls += 1;
    return (
      this.#polls >= this.#distance ||
      nowMs - this.#readMs >= LONGEST_MS ||
      rssBytes !== this.rssBytes ||
      this.#stat === null ||
      !isSame(this.#stat, stat)
    );
  }

  /** All figures were read; `stat` is null and `figures` empty if the process has ended. */
  read(stat: ProcessStat | null, figures: Figures, nowMs: Millis): void {
    const before = this.#figures;
    const hasChanged =
      stat === null ||
      this.#stat === null ||
      !isSame(this.#stat, stat) ||
      [...figures].some(([metric, value]) => !RARE.has(metric) && before.get(metric) !== value);
    this.#distance = hasChanged ? 1 : Math.min(MOST_POLLS, this.#distance * 2);
    this.#stat = stat;
    this.#figures = figures;
    this.#readMs = nowMs;
    this.#polls = 0;
  }

  /** As it was read last. */
  get rssBytes(): Bytes {
    return this.#figures.get("rssBytes") ?? 0;
  }
}

function isSame(a: ProcessStat, b: ProcessStat): boolean {
  return a.vmsBytes === b.vmsBytes && a.threads === b.threads && a.stackStart === b.stackStart;
}
