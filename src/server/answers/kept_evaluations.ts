/**
 * Evaluations of all services, made when they are asked for: one at a time, and one that took long is used again for ten
 * times as long.
 */
import type { Millis, TimeMs } from "../../model/base/units.js";
import { isPartial, type ServiceSpan } from "../../store/index.js";

/** A shorter evaluation is made again for each request. */
const SHORT_MS: Millis = 1_000;
const KEPT_FACTOR = 10;
const MOST_KEPT = 4;
/** Evidence of a process takes about 15 KB. */
const MOST_PROCESSES = 500;

interface Kept<Value> {
  readonly endMs: TimeMs;
  readonly keptMs: Millis;
  readonly value: Value;
}

export class KeptEvaluations<Value> {
  readonly #evaluate: (endMs: TimeMs) => Promise<Value>;
  #kept: readonly Kept<Value>[] = [];
  #last: Promise<unknown> = Promise.resolve();

  constructor(evaluate: (endMs: TimeMs) => Promise<Value>) {
    this.#evaluate = evaluate;
  }

  at(endMs: TimeMs): Promise<Value> {
    const result = this.#last.then(async () => {
      const kept = this.#kept.find((each) => Math.abs(each.endMs - endMs) <= each.keptMs);
      if (kept !== undefined) {
        return kept.value;
      }
      const begun = performance.now();
      const value = await this.#evaluate(endMs);
      const tookMs = performance.now() - begun;
      const keptMs = tookMs < SHORT_MS || isPartial() ? 0 : KEPT_FACTOR * tookMs;
      this.#kept = [{ endMs, keptMs, value }, ...this.#kept].slice(0, MOST_KEPT);
      return value;
    });
    this.#last = result.catch(() => {});
    return result;
  }
}

/** Services whose evidence is read together. */
export function batchesOf(spans: readonly ServiceSpan[]): ServiceSpan[][] {
  const batches: ServiceSpan[][] = [];
  let room = 0;
  for (const span of spans) {
    if (room < span.processes) {
      batches.push([]);
      room = MOST_PROCESSES;
    }
    batches.at(-1)?.push(span);
    room -= span.processes;
  }
  return batches;
}
