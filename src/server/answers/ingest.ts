/** Who sends what, and what is stored of it. */
import type { Millis } from "../../model/base/units.js";
import type { IngestJson } from "../../model/documents/ingest_document.js";
import type { Retention, Store, StreamFiles } from "../../store/index.js";
import type { Deliveries } from "../ingest/deliveries.js";

const MOST_STREAMS = 500;
const MOST_LABELS = 500;
/** Rows are counted at most this often. */
const FRESH_MS: Millis = 30_000;

export interface IngestParts {
  readonly store: Store;
  readonly files: Pick<StreamFiles, "list">;
  readonly deliveries: Deliveries;
  readonly retention: () => Retention & { readonly keepRecordingsMs: Millis };
}

export class IngestAnswers {
  readonly #parts: IngestParts;
  #counted: { readonly atMs: number; readonly storage: ReturnType<Store["storage"]> } | null = null;

  constructor(parts: IngestParts) {
    this.#parts = parts;
  }

  async document(nowMs: number): Promise<IngestJson> {
    const { store, files, deliveries, retention } = this.#parts;
    const all = (await files.list()).sort((a, b) => b.changedMs - a.changedMs);
    const listed = all.slice(0, MOST_STREAMS);
    const about = await store.about(listed.map(({ stream }) => stream));
    const { keepMs, keepRecordingsMs, mostBytes, tiers } = retention();
    const labels = await store.labelUse();
    const { services, dictionariesBytes, tiers: used } = await this.#storage(nowMs);
    return {
      schema: "tidemark.ingest/1",
      streams: listed.map(({ stream, bytes, changedMs }) => {
        const { service = "", version = "", host = "", source = "" } = about.get(stream) ?? {};
        const from = { service, version, host, source: source || "tidemark" };
        return { stream, ...from, bytes, lastMs: changedMs, ...deliveries.of(stream, nowMs) };
      }),
      otherStreams: all.length - listed.length,
      refused: deliveries.refusals,
      labels: labels
        .sort((a, b) => b.values + b.overflowed - a.values - a.overflowed)
        .slice(0, MOST_LABELS),
      storage: {
        services: [...services],
        tiers: [...used],
        dictionariesBytes,
        recordings: {
          streams: all.length,
          bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
        },
      },
      retention: {
        ...{ keepMs, keepRecordingsMs, bytes: mostBytes },
        tiers: Object.entries(tiers).map(([tier, untilMs]) => ({ tier, untilMs })),
      },
    };
  }

  #storage(nowMs: number): ReturnType<Store["storage"]> {
    if (this.#counted === null || nowMs - this.#counted.atMs > FRESH_MS) {
      this.#counted = { atMs: nowMs, storage: this.#parts.store.storage() };
      this.#counted.storage.catch(() => {
        this.#counted = null;
      });
    }
    return this.#counted.storage;
  }
}
