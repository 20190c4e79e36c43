/** Verdicts of the streams, made in the background: the diagnosis of each recording so far. */
import { setTimeout as sleep } from "node:timers/promises";
import { lineHolders } from "../diagnose/index.js";
import { diagnoseRecording } from "../inspect/recorded/index.js";
import type { Millis, TimeMs } from "../model/base/units.js";
import { reasonOf } from "../model/errors/reason.js";
import { isUnknown } from "../model/profile/imported.js";
import { openRecording } from "../recording/reader.js";
import type { Store, StreamFiles, StreamPart } from "../store/index.js";

/** The first verdict is made at this length of a recording, the next one when it is this factor longer, or this much. */
const FIRST_MS: Millis = 20_000;
const FACTOR = 1.5;
const MOST_LONGER_MS: Millis = 3_600_000;
/** Diagnosing takes at most this share of a core. */
const SHARE = 0.2;
const MOST_WAITING = 10_000;

interface Course {
  startMs: TimeMs;
  lastMs: TimeMs;
  ended: boolean;
  /** From another profiler without RSS: there is nothing to diagnose. */
  hasNoRss: boolean;
  dueMs: Millis;
}

export class Verdicts {
  readonly #store: Store;
  readonly #files: StreamFiles;
  readonly #warn: (text: string) => void;
  readonly #courses = new Map<string, Course>();
  readonly #waiting = new Set<string>();
  #working: Promise<void> | null = null;
  readonly #stopped = new AbortController();

  constructor(store: Store, files: StreamFiles, warn: (text: string) => void) {
    this.#store = store;
    this.#files = files;
    this.#warn = warn;
  }

  /** Called when frames are in the store. */
  written(parts: readonly StreamPart[]): void {
    for (const part of parts) {
      const course = this.#follow(part);
      const lengthMs = course.lastMs - course.startMs;
      if (course.hasNoRss) {
        continue;
      }
      if ((lengthMs >= course.dueMs || course.ended) && this.#waiting.size < MOST_WAITING) {
        course.dueMs = nextVerdictAt(lengthMs);
        this.#waiting.add(part.stream);
      }
      if (course.ended) {
        this.#courses.delete(part.stream);
      }
    }
    if (this.#waiting.size > 0 && !this.#stopped.signal.aborted) {
      this.#working ??= this.#work().finally(() => {
        this.#working = null;
      });
    }
  }

  #follow({ stream, items }: StreamPart): Course {
    let course = this.#courses.get(stream);
    if (course === undefined) {
      course = { startMs: 0, lastMs: 0, ended: false, hasNoRss: false, dueMs: FIRST_MS };
      this.#courses.set(stream, course);
    }
    for (const item of items) {
      if (item.kind === "meta") {
        course.startMs = item.meta.startedMs;
        course.hasNoRss = item.meta.sender !== undefined || isUnknown(item.meta.imported, "rss");
      } else if (item.kind === "metrics") {
        course.startMs ||= item.batch.timeMs[0] ?? 0;
        course.lastMs = item.batch.timeMs.at(-1) ?? course.lastMs;
      } else if (item.kind === "end") {
        course.ended = true;
      }
    }
    return course;
  }

  async #work(): Promise<void> {
    for (const stream of this.#waiting) {
      if (this.#stopped.signal.aborted) {
        return;
      }
      this.#waiting.delete(stream);
      const tookMs = await this.#diagnose(stream).catch((error: unknown) => {
        this.#warn(`no verdict of stream ${stream}: ${reasonOf(error).message}`);
        return 0;
      });
      const { signal } = this.#stopped;
      await sleep(tookMs * (1 / SHARE - 1), undefined, { signal }).catch(() => {});
    }
  }

  /** @returns the time of the diagnosis, without the wait for a store that is being written. */
  async #diagnose(stream: string): Promise<Millis> {
    const begun = performance.now();
    const recording = openRecording(this.#files.pathOf(stream), () => true);
    const pause = () => sleep(0);
    const diagnosis = await diagnoseRecording(recording, pause);
    const { verdict, growth } = diagnosis;
    const tookMs = performance.now() - begun;
    await this.#store.putVerdict({
      stream,
      timeMs: recording.endMs,
      ...verdict,
      growthBytesPerHour: growth.bytesPerHour,
      limitBytes: growth.limitBytes,
      msToLimit: growth.msToLimit,
      holders: lineHolders(diagnosis),
    });
    return tookMs;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#working;
  }
}

/** The length of a recording at which it is diagnosed again. `lengthMs`: at this verdict. */
export function nextVerdictAt(lengthMs: Millis): Millis {
  return Math.max(FIRST_MS, Math.min(lengthMs * FACTOR, lengthMs + MOST_LONGER_MS));
}
