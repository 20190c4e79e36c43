/** What is known about a process while it is being recorded; `tidemark attach` shows it. */
import { readStatus } from "../../linux/index.js";
import type { Bytes, Millis, Pid } from "../../model/base/units.js";
import type { FrameJson } from "../../model/documents/documents.js";
import { orNull } from "../../model/errors/errors.js";
import { openRecording } from "../../record/index.js";
import { groupSites } from "../recorded/rows/site_groups.js";
import { summarize } from "../recorded/summary.js";

export interface AttachProgress {
  readonly elapsedMs: Millis;
  /** Time until the end; null: until the verdict is settled. */
  readonly leftMs: Millis | null;
  readonly rssBytes: Bytes;
  /** Since the recording began. */
  readonly rssGrowthBytes: Bytes;
  /** The process and its children, when the recording was last read; null for a single process. */
  readonly tree: {
    readonly processes: number;
    readonly pssBytes: Bytes;
    readonly growthBytes: Bytes;
  } | null;
  /** The site that holds most of the memory allocated since then; null if nothing is known yet. */
  readonly most: { readonly frame: FrameJson; readonly bytes: Bytes } | null;
  /** How long ago the recording was last read, for `tree` and `most`. */
  readonly readAgoMs: Millis;
  /** The latest verdict: "python-leak (80 % sure)"; "" before the first. */
  readonly verdict: string;
}

/**
 * When the recording is first read, and the factor of its length at which it is read again; reading takes time
 * proportional to its length.
 */
const FIRST_READING_MS: Millis = 3_000;
const READING_FACTOR = 1.5;

/** Calls `report` every `everyMs`. @internal */
export class AttachProgressReader {
  /** The latest verdict as text. */
  verdict = "";
  #dueMs: Millis;
  #readingDueMs: Millis = FIRST_READING_MS;
  #firstRssBytes: Bytes | null = null;
  #read: ReadSoFar = { most: null, tree: null };
  #readMs: Millis = 0;

  readonly #pid: Pid;
  readonly #forMs: Millis | null;
  readonly #everyMs: Millis;
  readonly #report: (progress: AttachProgress) => void;

  constructor(
    pid: Pid,
    forMs: Millis | null,
    everyMs: Millis,
    report: (progress: AttachProgress) => void,
  ) {
    this.#pid = pid;
    this.#forMs = forMs;
    this.#everyMs = everyMs;
    this.#dueMs = everyMs;
    this.#report = report;
  }

  /** To be called often; most calls return at once. */
  recorded(elapsedMs: Millis, path: string): void {
    this.#firstRssBytes ??= readStatus(this.#pid)?.rssBytes ?? 0;
    if (elapsedMs < this.#dueMs) {
      return;
    }
    this.#dueMs = elapsedMs + this.#everyMs;
    if (elapsedMs >= this.#readingDueMs) {
      this.#readingDueMs = elapsedMs * READING_FACTOR;
      this.#read = readSoFar(path);
      this.#readMs = elapsedMs;
    }
    const rssBytes = readStatus(this.#pid)?.rssBytes ?? 0;
    this.#report({
      elapsedMs,
      leftMs: this.#forMs === null ? null : Math.max(0, this.#forMs - elapsedMs),
      rssBytes,
      rssGrowthBytes: rssBytes - this.#firstRssBytes,
      ...this.#read,
      readAgoMs: elapsedMs - this.#readMs,
      verdict: this.verdict,
    });
  }
}

type ReadSoFar = Pick<AttachProgress, "most" | "tree">;

function readSoFar(path: string): ReadSoFar {
  // A recording of a few seconds may not contain a profile yet.
  const summary = orNull(() => summarize(openRecording(path), "end"));
  if (summary === null) {
    return { most: null, tree: null };
  }
  const groups = groupSites(summary.sites);
  const most = groups.reduce<(typeof groups)[number] | null>(
    (best, group) => (group.live.bytes > (best?.live.bytes ?? 0) ? group : best),
    null,
  );
  const { pss, series, processes } = summary;
  return {
    most: most && { frame: most.headline, bytes: most.live.bytes },
    tree: pss
      ? {
          processes: processes.filter(({ endRssBytes }) => (endRssBytes ?? 0) > 0).length,
          pssBytes: pss.endBytes,
          growthBytes: pss.endBytes - series.startBytes,
        }
      : null,
  };
}
