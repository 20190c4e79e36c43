/** Verdicts of a collector without a server: one at a time, on the program that grew most, at a bounded cost. */
import { diagnoseRecording } from "../../inspect/index.js";
import { threadCpu } from "../../linux/this_process/clock.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import { CALM_KINDS, type DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { openRecording } from "../../record/index.js";

/** A recording in progress, with an agent. */
export interface Judged {
  readonly path: string;
  readonly sinceMs: Millis;
  /** How much the program's RSS grew since then. */
  readonly grown: Bytes;
  /**
   * `isNews`: the kind differs from the one reported last, or the program has ended and the kind is not harmless.
   * `isFinal`: the program has ended.
   */
  readonly onVerdict: (
    verdict: DiagnosisJson["verdict"],
    isNews: boolean,
    isFinal: boolean,
  ) => void;
  /** The program has ended, and its recording is too short for a verdict. */
  readonly onUndecided?: (diagnosis: DiagnosisJson) => void;
}

/** First verdict of a recording; each next one when the recording is this many times as long. */
const FIRST_MS: Millis = 30_000;
const FACTOR = 2;
/** Verdicts take at most this share of a core, and only programs that grew by this much get one. */
const SHARE = 0.003;
const LEAST_GROWTH: Bytes = 2 ** 20;
/** If more programs than this end at the same time, the others get no last verdict. */
const MOST_ENDED = 20;
/** Reported only after another kind. */

interface Course {
  dueMs: Millis;
  /** The kind that was reported last; "" while it is harmless. */
  kind: string;
}

export class VerdictTurns {
  /** By path of the recording. */
  #courses = new Map<string, Course>();
  /** Recordings of programs that have ended. */
  #ended: Judged[] = [];
  #working: Promise<void> | null = null;
  #nextMs: Millis = 0;

  /** The program has ended: its recording gets one more verdict. */
  ended(judged: Judged): void {
    this.#ended = [...this.#ended, judged].slice(-MOST_ENDED);
  }

  /**
   * `all`: every recording that grows; recordings that are missing from it are forgotten. All times are from one
   * clock.
   */
  next(all: readonly Judged[], nowMs: Millis): void {
    this.#courses = new Map(
      [...all, ...this.#ended].map(({ path, sinceMs }) => [
        path,
        this.#courses.get(path) ?? { dueMs: sinceMs + FIRST_MS, kind: "" },
      ]),
    );
    if (this.#working !== null || nowMs < this.#nextMs) {
      return;
    }
    const last = this.#ended.shift();
    const [due] = all
      .filter(({ path, grown }) => grown >= LEAST_GROWTH && nowMs >= this.#courseOf(path).dueMs)
      .sort((a, b) => b.grown - a.grown);
    const next = last ?? due;
    if (next !== undefined) {
      const course = this.#courseOf(next.path);
      course.dueMs = next.sinceMs + (nowMs - next.sinceMs) * FACTOR;
      const cpu = threadCpu();
      this.#working = diagnose(next, course, last !== undefined).finally(() => {
        this.#working = null;
        this.#nextMs = nowMs + cpu() / SHARE;
      });
    }
  }

  /** Waits for the verdict in progress. Rethrows the error of a bug. */
  async settled(): Promise<void> {
    await this.#working;
  }

  #courseOf(path: string): Course {
    return this.#courses.get(path) ?? { dueMs: Number.POSITIVE_INFINITY, kind: "" };
  }
}

async function diagnose(
  { path, onVerdict, onUndecided }: Judged,
  course: Course,
  isFinal: boolean,
): Promise<void> {
  try {
    const diagnosis = await diagnoseRecording(openRecording(path), async () => {});
    const { verdict } = diagnosis;
    const kind = CALM_KINDS.has(verdict.kind) ? "" : verdict.kind;
    if (verdict.kind !== "insufficient-evidence") {
      const isNews = kind !== course.kind || (isFinal && kind !== "");
      course.kind = kind;
      onVerdict(verdict, isNews, isFinal);
    } else if (isFinal) {
      onUndecided?.(diagnosis);
    }
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
  }
}
