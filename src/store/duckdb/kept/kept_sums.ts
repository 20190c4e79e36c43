/**
 * Sums of profiles by stack over whole hours and days. They do not change once the time is over, so they are kept in memory:
 * a flame graph of 30 days adds up 30 of them instead of reading 30 days of samples again.
 */
import type { Bytes, Millis, TimeMs } from "../../../model/base/units.js";
import { KeptReadings } from "./kept_readings.js";
import { KeptSpans, type Span } from "./kept_spans.js";

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

export interface SpanSums extends Span {
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

export class KeptSums extends KeptSpans<SpanSums> {
  /** What {@link changed} reports changes these, too. */
  readonly readings = new KeptReadings();
  #rows = new Map<string, number>();
  #stacks: KeptStack[] = [];
  #users = 0;
  /** Resolves, by `#ended`, when nobody uses the dictionary. */
  #unused: Promise<void> = Promise.resolve();
  #ended = () => {};

  constructor() {
    super(MOST_BYTES, ({ stacks, lives }) => {
      const numbers = stacks.length * (SUMMED.length + 1) + lives.size * 6;
      return numbers * NUMBER_BYTES;
    });
  }

  /** Rows of the dictionary stay valid until `work` ends. A dictionary that is too large is emptied once nobody uses it. */
  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    while (this.#stacks.length > MOST_STACKS) {
      if (this.#users > 0) {
        await this.#unused;
        continue;
      }
      this.clear();
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

  override changed(service: string | null, fromMs: TimeMs): void {
    super.changed(service, fromMs);
    this.readings.changed(service, fromMs);
  }
}
