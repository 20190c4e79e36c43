/**
 * Sums of profiles by stack over whole hours and days. They do not change once the time is over, so they are kept in memory:
 * a flame graph of 30 days adds up 30 of them instead of reading 30 days of samples again.
 */
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import { isPartial } from "../interface/partial_answers.js";

/** All live figures are integrals over the span, in ms; allocated figures are sums. */
export const SUMMED = [
  "live_bytes",
  "live_objects",
  "live_variance",
  "allocated_bytes",
  "allocated_objects",
] as const;

const MOST_BYTES: Bytes = 64 << 20;
/** Different pairs of a stack and an allocator. */
const MOST_STACKS = 500_000;
const NUMBER_BYTES: Bytes = 8;

export interface SpanSums {
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
  /** Rows of the dictionary of {@link KeptSums}. */
  readonly stacks: Uint32Array;
  readonly figures: Readonly<Record<(typeof SUMMED)[number], Float64Array>>;
  /** By instance: the first and the last moment of the span at which it has a profile. */
  readonly lives: ReadonlyMap<bigint, readonly [TimeMs, TimeMs]>;
  /** Of merged profiles: instances times ms. */
  readonly mergedMs: Millis;
}

export interface KeptStack {
  readonly stackId: bigint;
  readonly domain: string;
  /** The value of a label; "": it has none, or values are not distinguished. */
  readonly label: string;
}

/** Which profiles are summed: `service`, if they are all of one. */
export interface SumsKey {
  readonly text: string;
  readonly service: string | null;
}

interface Kept {
  readonly key: SumsKey;
  readonly sums: SpanSums;
  readonly bytes: Bytes;
}

/** A span that is being summed. Rows that arrive meanwhile may be missing from it. */
interface Summing {
  readonly service: string | null;
  readonly endMs: TimeMs;
  isChanged: boolean;
}

export class KeptSums {
  /** The least recently used first. */
  readonly #kept = new Map<string, Kept>();
  #bytes: Bytes = 0;
  readonly #summing = new Set<Summing>();
  #rows = new Map<string, number>();
  #stacks: KeptStack[] = [];
  #users = 0;
  /** Resolves, by `#ended`, when nobody uses the dictionary. */
  #unused: Promise<void> = Promise.resolve();
  #ended = () => {};

  /** Rows of the dictionary stay valid until `work` ends. A dictionary that is too large is emptied once nobody uses it. */
  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    while (this.#stacks.length > MOST_STACKS) {
      if (this.#users > 0) {
        await this.#unused;
        continue;
      }
      this.#kept.clear();
      this.#bytes = 0;
      this.#rows = new Map();
      this.#stacks = [];
    }
    if (this.#users === 0) {
      this.#unused = new Promise((resolve) => {
        this.#ended = resolve;
      });
    }
    this.#users += 1;
    try {
      return await work();
    } finally {
      this.#users -= 1;
      if (this.#users === 0) {
        this.#ended();
      }
    }
  }

  get stackCount(): number {
    return this.#stacks.length;
  }

  stackAt(row: number): KeptStack {
    return this.#stacks[row] as KeptStack;
  }

  rowOf(stackId: bigint, domain: string, label: string): number {
    const text = `${stackId} ${domain} ${label}`;
    let row = this.#rows.get(text);
    if (row === undefined) {
      row = this.#stacks.push({ stackId, domain, label }) - 1;
      this.#rows.set(text, row);
    }
    return row;
  }

  find(key: SumsKey, startMs: TimeMs, endMs: TimeMs): SpanSums | undefined {
    const name = nameOf(key, startMs, endMs);
    const found = this.#kept.get(name);
    if (found !== undefined) {
      this.#kept.delete(name);
      this.#kept.set(name, found);
    }
    return found?.sums;
  }

  /** Sums spans, and keeps them unless rows of their time arrived meanwhile, or a part of the database did not answer. */
  async sum(
    key: SumsKey,
    endMs: TimeMs,
    sum: () => Promise<readonly SpanSums[]>,
  ): Promise<readonly SpanSums[]> {
    const summing = { service: key.service, endMs, isChanged: false };
    this.#summing.add(summing);
    try {
      const spans = await sum();
      if (!summing.isChanged && !isPartial()) {
        for (const sums of spans) {
          this.#keep(key, sums);
        }
      }
      return spans;
    } finally {
      this.#summing.delete(summing);
    }
  }

  #keep(key: SumsKey, sums: SpanSums): void {
    const name = nameOf(key, sums.startMs, sums.endMs);
    this.#drop(name);
    const numbers = sums.stacks.length * (SUMMED.length + 1) + sums.lives.size * 6;
    const bytes = numbers * NUMBER_BYTES + 4 * name.length;
    this.#kept.set(name, { key, sums, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= MOST_BYTES) {
        break;
      }
      this.#drop(oldest);
    }
  }

  /** Rows of a service were written or removed (null: of any), from a time on: a profile is valid for long after it. */
  changed(service: string | null, fromMs: TimeMs): void {
    const isOf = (other: string | null) => service === null || other === null || other === service;
    for (const [name, { key, sums }] of this.#kept) {
      if (sums.endMs > fromMs && isOf(key.service)) {
        this.#drop(name);
      }
    }
    for (const summing of this.#summing) {
      summing.isChanged ||= summing.endMs > fromMs && isOf(summing.service);
    }
  }

  #drop(name: string): void {
    this.#bytes -= this.#kept.get(name)?.bytes ?? 0;
    this.#kept.delete(name);
  }
}

function nameOf({ text }: SumsKey, startMs: TimeMs, endMs: TimeMs): string {
  return `${startMs} ${endMs} ${text}`;
}
