/**
 * What was computed from the rows of whole hours and days. It does not change once the time is over, so it is kept in memory
 * until rows of that time arrive or are removed.
 */
import type { Bytes, TimeMs } from "../../../model/base/units.js";
import { isPartial } from "../../interface/partial_answers.js";

export interface Span {
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
}

/** Which rows are read: `service`, if they are all of one. */
export interface SpanKey {
  readonly text: string;
  readonly service: string | null;
}

interface Kept<Value> {
  readonly key: SpanKey;
  readonly value: Value;
  readonly bytes: Bytes;
}

/** Spans that are being computed. Rows that arrive meanwhile may be missing from them. */
interface Computing {
  readonly service: string | null;
  readonly endMs: TimeMs;
  isChanged: boolean;
}

export class KeptSpans<Value extends Span> {
  /** The least recently used first. */
  readonly #kept = new Map<string, Kept<Value>>();
  #bytes: Bytes = 0;
  readonly #computing = new Set<Computing>();
  readonly #bytesOf: (value: Value) => Bytes;
  readonly #mostBytes: Bytes;

  constructor(mostBytes: Bytes, bytesOf: (value: Value) => Bytes) {
    this.#mostBytes = mostBytes;
    this.#bytesOf = bytesOf;
  }

  find(key: SpanKey, startMs: TimeMs, endMs: TimeMs): Value | undefined {
    const name = nameOf(key, startMs, endMs);
    const found = this.#kept.get(name);
    if (found !== undefined) {
      this.#kept.delete(name);
      this.#kept.set(name, found);
    }
    return found?.value;
  }

  /** Computes spans, and keeps them unless rows of their time arrived meanwhile, or a part of the database did not answer. */
  async compute(
    key: SpanKey,
    endMs: TimeMs,
    compute: () => Promise<readonly Value[]>,
  ): Promise<readonly Value[]> {
    const computing = { service: key.service, endMs, isChanged: false };
    this.#computing.add(computing);
    try {
      const values = await compute();
      if (!computing.isChanged && !isPartial()) {
        for (const value of values) {
          this.#keep(key, value);
        }
      }
      return values;
    } finally {
      this.#computing.delete(computing);
    }
  }

  #keep(key: SpanKey, value: Value): void {
    const name = nameOf(key, value.startMs, value.endMs);
    this.#drop(name);
    const bytes = this.#bytesOf(value) + 4 * name.length;
    this.#kept.set(name, { key, value, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#mostBytes) {
        break;
      }
      this.#drop(oldest);
    }
  }

  /** Rows of a service were written or removed (null: of any), from a time on: a row is valid for long after it. */
  changed(service: string | null, fromMs: TimeMs): void {
    const isOf = (other: string | null) => service === null || other === null || other === service;
    for (const [name, { key, value }] of this.#kept) {
      if (value.endMs > fromMs && isOf(key.service)) {
        this.#drop(name);
      }
    }
    for (const computing of this.#computing) {
      computing.isChanged ||= computing.endMs > fromMs && isOf(computing.service);
    }
  }

  clear(): void {
    this.#kept.clear();
    this.#bytes = 0;
  }

  #drop(name: string): void {
    this.#bytes -= this.#kept.get(name)?.bytes ?? 0;
    this.#kept.delete(name);
  }
}

function nameOf({ text }: SpanKey, startMs: TimeMs, endMs: TimeMs): string {
  return `${startMs} ${endMs} ${text}`;
}
