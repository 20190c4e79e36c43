/** The live samples of a site that a holder lookup uses. */
import type { SiteJudgement } from "../../diagnose/index.js";
import type { LookupSite, SampledStack } from "../../holders/lookup_request.js";
import { float64At, itemAt, uint32At } from "../../model/base/columns.js";
import type { Address, Bytes, Millis, StackId, TimeMs } from "../../model/base/units.js";
import type { LiveSamples } from "../../segment/index.js";

const MOST_ADDRESSES = 96;
/** Most samples that are used to find what creates handles. */
const MOST_SAMPLES = 10_000;
/** Time from a snapshot to the copy of the heap, and the largest growth of a block in one step. */
const LONGEST_COPY_MS: Millis = 3_000;
const LEAST_STEP_BYTES: Bytes = 2 ** 18;

/** A live sample. */
export interface Born {
  readonly address: Address;
  readonly bytes: Bytes;
  readonly bornMs: TimeMs;
}

/** Its largest block, and the bounds of its size when the copy of the heap is complete. */
export function largestBlock(
  rows: readonly Born[],
  { slope }: SiteJudgement,
): LookupSite["swelling"] {
  const least = Math.max(...rows.map(({ bytes }) => bytes));
  return { least, most: least + slope * LONGEST_COPY_MS + LEAST_STEP_BYTES };
}

/** The youngest live samples, as many as a lookup may use, by stack. */
export function youngOf(samples: LiveSamples | undefined): SampledStack[] {
  if (samples === undefined) {
    return [];
  }
  const { address, bornMs, stack, length } = samples;
  const births = Array.from(bornMs.subarray(0, length));
  const oldest = births.sort((a, b) => b - a).at(MOST_SAMPLES - 1) ?? 0;
  const byStack = new Map<StackId, Address[]>();
  for (let row = 0; row < length; row++) {
    if (float64At(bornMs, row) >= oldest) {
      const addresses = byStack.get(uint32At(stack, row)) ?? [];
      byStack.set(uint32At(stack, row), addresses);
      addresses.push(float64At(address, row));
    }
  }
  return [...byStack].map(([stack, addresses]) => ({ stack, addresses }));
}

/** The allocation time after which a sample may be freed soon, perhaps before the heap is copied. */
export function oldEnough(settledMs: TimeMs, nowMs: TimeMs): TimeMs {
  const spanMs = nowMs - settledMs;
  return nowMs - Math.max(spanMs / 6, Math.min(LONGEST_COPY_MS, spanMs / 2));
}

/** Prefers samples that were kept for some time, spread evenly over their allocation times. */
export function choose(rows: readonly Born[], settledMs: TimeMs, nowMs: TimeMs): Address[] {
  const oldMs = oldEnough(settledMs, nowMs);
  const kept = rows.filter(({ bornMs }) => bornMs >= settledMs && bornMs <= oldMs);
  const from = (kept.length > 0 ? kept : [...rows]).sort((a, b) => a.bornMs - b.bornMs);
  const step = Math.max(1, from.length / MOST_ADDRESSES);
  return Array.from(
    { length: Math.min(from.length, MOST_ADDRESSES) },
    (_, i) => itemAt(from, Math.floor(i * step)).address,
  );
}
