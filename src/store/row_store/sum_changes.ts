/** Which kept sums a write changes: those from the earliest of its new frames on. */
import type { TimeMs } from "../../model/base/units.js";
import type { StreamItem } from "../../recording/stream_reader.js";
import type { KeptSums } from "../duckdb/kept/kept_sums.js";
import { changedFromMs } from "../duckdb/stream_rows.js";

export class SumChanges {
  /** By service; null: it is not known yet. */
  readonly #fromMs = new Map<string | null, TimeMs>();

  /** A frame whose rows the database does not have. */
  add(service: string | null, item: StreamItem): void {
    const timeMs = changedFromMs(item);
    if (timeMs !== null) {
      this.#fromMs.set(service, Math.min(timeMs, this.#fromMs.get(service) ?? timeMs));
    }
  }

  dropFrom(sums: KeptSums): void {
    for (const [service, fromMs] of this.#fromMs) {
      sums.changed(service, fromMs);
    }
  }
}
