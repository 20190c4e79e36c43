/** Verdicts of a collector without a server: one at a time, of the program that grew most, at a bounded cost. */
import { diagnoseRecording } from "../inspect/index.js";
import { threadCpu } from "../linux/this_process/clock.js";
import type { Bytes, Millis } from "../model/base/units.js";
import type { DiagnosisJson } from "../model/documents/diagnosis_document.js";
import { TidemarkError } from "../model/errors/errors.js";
import { openRecording } from "../record/index.js";

/** A recording with an agent, while it grows. */
export interface Judged {
  readonly path: string;
  readonly sinceMs: Millis;
  /** How much the program's RSS grew since then. */
  readonly grown: Bytes;
  readonly report: (verdict: DiagnosisJson["verdict"]) => void;
}

/** First verdict of a recording; each next one when the recording is this many times as long. */
const FIRST_MS: Millis = 30_000;
const FACTOR = 2;
/** Verdicts take at most this share of a core, and only programs that grew by this much get one. */
const SHARE = 0.003;
const LEAST_GROWTH: Bytes = 2 ** 20;
/** Reported only after another kind. */
const CALM: ReadonlySet<string> = new Set(["steady", "warm-up", "cache-plateau"]);

interface Course {
  dueMs: Millis;
  /** The kind that was reported last; "" while it is calm. */
  kind: string;
}

export class VerdictTurns {
  /** By path of the recording. */
  #courses = new Map<string, Course>();
  #working: Promise<void> | null = null;
  #nextMs: Millis = 0;

  /** `all`: every recording that grows; those that are missing are forgotten. Times are of one clock. */
  next(all: readonly Judged[], nowMs: Millis): void {
    this.#courses = new Map(
      all.map(({ path, sinceMs }) => [
        path,
        this.#courses.get(path) ?? { dueMs: sinceMs + FIRST_MS, kind: "" },
      ]),
    );
    if (this.#working !== null || nowMs < this.#nextMs) {
      return;
    }
    const [first] = all
      .filter(({ path, grown }) => grown >= LEAST_GROWTH && nowMs >= this.#courseOf(path).dueMs)
      .sort((a, b) => b.grown - a.grown);
    if (first !== undefined) {
      this.#courseOf(first.path).dueMs = first.sinceMs + (nowMs - first.sinceMs) * FACTOR;
      const cpu = threadCpu();
      this.#working = this.#diagnose(first, this.#courseOf(first.path)).finally(() => {
        this.#working = null;
        this.#nextMs = nowMs + cpu() / SHARE;
      });
    }
  }

  /** Waits for the verdict that is being made. Throws what a programming error threw. */
  async settled(): Promise<void> {
    await this.#working;
  }

  #courseOf(path: string): Course {
    return this.#courses.get(path) ?? { dueMs: Number.POSITIVE_INFINITY, kind: "" };
  }

  async #diagnose({ path, report }: Judged, course: Course): Promise<void> {
    try {
      const { verdict } = await diagnoseRecording(openRecording(path), async () => {});
      const kind = CALM.has(verdict.kind) ? "" : verdict.kind;
      if (verdict.kind !== "insufficient-evidence" && kind !== course.kind) {
        course.kind = kind;
        report(verdict);
      }
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
    }
  }
}
