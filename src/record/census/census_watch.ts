/**
 * Objects by type, counted repeatedly from outside, for a process that no agent is in:
 *
 *   watch ──"census"──> worker thread ──> scan of the heap, unpaused ──> types, bytes, objects
 *     │                     └─ once, after the first third: the objects' addresses
 *     └──"holders", near the end, for growing types ──> new objects ──> their holders
 *
 * The program is never paused for this, and nothing in it is changed. Counting uses a core of this process for
 * a moment; the larger the heap, the rarer the censuses. If the process cannot be read, or runs no known
 * Python, the evidence has no census and gives the reason.
 */

import { Worker } from "node:worker_threads";
import { holderEvidenceOf } from "../../diagnose/evidence/holder_evidence.js";
import {
  type CensusEvidence,
  type Evidence,
  growingTypes,
  type TypeCourse,
} from "../../diagnose/index.js";
import { nowMs } from "../../linux/this_process/clock.js";
import { float64At } from "../../model/base/columns.js";
import type { Bytes, Millis, Objects, Pid, TimeMs } from "../../model/base/units.js";
import type { TypeCounts } from "../../model/heap/heap_graph.js";
import { librarySite } from "../../model/profile/lookup_sites.js";
import { heldShare } from "../../recording/holder_reader.js";
import type { HolderBatch, HolderLookup } from "../../recording/types.js";

const START_SHARE = 1 / 3;
/**
 * Share of the watch after which holders are looked up: late, when most objects exist, but early enough to be
 * reported.
 */
const LOOKUP_SHARE = 0.8;
const MOST_LOOKUPS = 3;
const MOST_UNHELD = 0.5;
const MOST_TYPES = 6;
/** Least censuses after the first third; with fewer, one more is taken at the end. */
const FEWEST_LATE = 3;
/** Small types are ignored, except those behind which a library keeps memory. */
const SMALLEST_TYPE_BYTES = 200_000;

export type CensusQuestion =
  | { readonly ask: "census"; readonly remember: boolean }
  | {
      readonly ask: "holders";
      readonly types: readonly { readonly type: string; readonly site: string }[];
    };

export type CensusAnswer =
  | ({ readonly kind: "census" } & TypeCounts)
  | { readonly kind: "holders"; readonly batch: HolderBatch | null }
  /** `why` "": the process has ended. */
  | { readonly kind: "refused"; readonly why: string };

interface Reply {
  readonly answer: CensusAnswer;
  readonly cpuMs: Millis;
}

interface Count {
  readonly timeMs: TimeMs;
  readonly bytes: ReadonlyMap<string, Bytes>;
  readonly objects: ReadonlyMap<string, Objects>;
}

export class CensusWatch {
  readonly #worker: Worker;
  readonly #schedule = new CensusSchedule();
  readonly #counts: Count[] = [];
  #busy = false;
  #remembered = false;
  #lookups = 0;
  #found: HolderLookup | null = null;
  #refusal = "";

  readonly #pid: Pid;
  readonly #startMs: TimeMs;
  readonly #forMs: Millis;

  constructor(pid: Pid, startMs: TimeMs, forMs: Millis) {
    this.#pid = pid;
    this.#startMs = startMs;
    this.#forMs = forMs;

    this.#worker = new Worker(new URL("./census_worker.js", import.meta.url), {
      workerData: { pid },
    });
    this.#worker.unref();
    // A thread that failed takes no more censuses.
    this.#worker.on("error", () => {
      this.#busy = true;
      this.#refusal ||= "counting failed";
    });
  }

  /** Requests what is due. Holders of all possibly growing types are looked up, because the verdict comes later. */
  polled(elapsedMs: Millis, nowMs: TimeMs): void {
    if (this.#busy || this.#refusal !== "") {
      return;
    }
    if (this.#wantsHolders && elapsedMs >= LOOKUP_SHARE * this.#forMs) {
      this.#lookups += 1;
      this.#lookUp(growingTypes(this.#census(), this.#startMs, nowMs, true), nowMs);
    } else if (this.#schedule.due(elapsedMs)) {
      this.#count(elapsedMs, nowMs);
    }
  }

  /** At the end of the watch: waits for pending work, and takes one more census if there were too few. */
  async finish(elapsedMs: Millis, longestMs: Millis): Promise<void> {
    await this.#settled(longestMs);
    const lateMs = this.#startMs + START_SHARE * elapsedMs;
    const late = this.#counts.filter(({ timeMs }) => timeMs >= lateMs).length;
    if (late < FEWEST_LATE && !this.#busy && this.#refusal === "") {
      this.#count(elapsedMs, nowMs());
      await this.#settled(longestMs);
    }
  }

  /** Waits until the request is answered or the time is over. */
  #settled(longestMs: Millis): Promise<void> {
    if (!this.#busy || this.#refusal !== "") {
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, longestMs);
      this.#worker.once("message", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Returns the results; nothing more is requested. */
  close(): Pick<Evidence, "census" | "holders" | "collectors"> & { readonly refusal: string } {
    void this.#worker.terminate();
    const found = this.#found;
    return {
      ...(this.#counts.length > 0 ? { census: this.#census() } : {}),
      ...(found ? holderEvidenceOf([found]) : {}),
      refusal: this.#refusal,
    };
  }

  /** A copy of a changing heap may be torn just above the object, so objects without a holder are looked up again. */
  get #wantsHolders(): boolean {
    return this.#lookups < (heldShare(this.#found?.rows ?? []) < MOST_UNHELD ? MOST_LOOKUPS : 1);
  }

  #count(elapsedMs: Millis, timeMs: TimeMs): void {
    const remember = !this.#remembered && elapsedMs >= START_SHARE * this.#forMs;
    this.#remembered ||= remember;
    this.#ask({ ask: "census", remember }, ({ answer, cpuMs }) => {
      this.#schedule.counted(elapsedMs, cpuMs);
      if (answer.kind === "census") {
        const { types, bytes, objects } = answer;
        const column = (values: Float64Array) =>
          new Map(types.map((type, row) => [type, float64At(values, row)]));
        this.#counts.push({ timeMs, bytes: column(bytes), objects: column(objects) });
      }
    });
  }

  #lookUp(growing: ReturnType<typeof growingTypes>, timeMs: TimeMs): void {
    const types = growing
      .slice(0, MOST_TYPES)
      .flatMap(({ site }) =>
        site.type === undefined ? [] : [{ type: site.type, site: site.key }],
      );
    this.#ask({ ask: "holders", types }, ({ answer }) => {
      const batch = answer.kind === "holders" ? answer.batch : null;
      if (batch !== null && heldShare(batch.rows) >= heldShare(this.#found?.rows ?? [])) {
        this.#found = { ...batch, rows: batch.rows.map((row) => ({ ...row, foundMs: timeMs })) };
      }
    });
  }

  #ask(question: CensusQuestion, answered: (reply: Reply) => void): void {
    this.#busy = true;
    this.#worker.once("message", (reply: Reply) => {
      this.#busy = false;
      if (reply.answer.kind === "refused") {
        this.#refusal = reply.answer.why || "the process had ended";
      }
      answered(reply);
    });
    this.#worker.postMessage(question);
  }

  #census(): CensusEvidence {
    const held = new Set(this.#found?.rows.map(({ site }) => site));
    const isListed = (type: string, own: Bytes) =>
      own >= SMALLEST_TYPE_BYTES || held.has(librarySite(this.#pid, type));
    const names = new Set(
      this.#counts.flatMap(({ bytes }) =>
        [...bytes].flatMap(([type, own]) => (isListed(type, own) ? [type] : [])),
      ),
    );
    const types: TypeCourse[] = [...names].map((type) => ({
      type,
      bytes: this.#counts.map(({ bytes }) => bytes.get(type) ?? 0),
      objects: this.#counts.map(({ objects }) => objects.get(type) ?? 0),
    }));
    return { pid: this.#pid, timesMs: this.#counts.map(({ timeMs }) => timeMs), types };
  }
}

/** CPU time of this process while a user watches; the program never waits for it. */
const CENSUS_SHARE = 0.05;
const FIRST_MS: Millis = 4_000;
/** Each one comes when the watch is this factor longer than at the last one. */
const GROWTH = 0.06;

/**
 * Decides when objects are counted: every few seconds at first, then more and more rarely, and never above a
 * share of a core.
 */
class CensusSchedule {
  #costMs: Millis = 0;
  #nextMs: Millis = FIRST_MS;
  #counts = 0;

  due(elapsedMs: Millis): boolean {
    return elapsedMs >= this.#nextMs;
  }

  /** `elapsedMs`: when it was requested. The first costs more than later ones, because its code is not compiled yet. */
  counted(elapsedMs: Millis, cpuMs: Millis): void {
    this.#counts += 1;
    if (this.#counts > 1) {
      this.#costMs = this.#counts === 2 ? cpuMs : this.#costMs * 0.8 + cpuMs * 0.2;
    }
    this.#nextMs = elapsedMs + Math.max(FIRST_MS, elapsedMs * GROWTH, this.#costMs / CENSUS_SHARE);
  }
}
