/** The newest figures of programs in whole hours and days, and the RSS of services by hour. */
import type { Bytes } from "../../../model/base/units.js";
import { KeptSpans, type Span } from "./kept_spans.js";

/** The last or largest reading of a program in a span; NaN: it has none. */
export const READ = ["last_ms", "rss", "peak", "limit_bytes", "high_bytes", "live"] as const;

export interface SpanReadings extends Span {
  /** Of recorded programs. */
  readonly series: BigUint64Array;
  /** {@link READ} of each of them, in turn. */
  readonly figures: Float64Array;
  /** By service: for each hour of the span, the RSS times ms, and the ms in which an instance reported it. */
  readonly hours: ReadonlyMap<string, Float64Array>;
}

const MOST_BYTES: Bytes = 32 << 20;

export class KeptReadings extends KeptSpans<SpanReadings> {
  constructor() {
    super(MOST_BYTES, ({ series, figures, hours }) => {
      const ofHours = [...hours.values()].reduce((sum, { byteLength }) => sum + byteLength, 0);
      return series.byteLength + figures.byteLength + ofHours;
    });
  }
}
