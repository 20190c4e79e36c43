/** Whether pages shared by a fork become private in children: their private memory grows, their RSS does not. */

import type { Bytes } from "../../model/base/units.js";
import type { Metric } from "../../model/profile/series.js";
import type { MetricRow } from "../../recording/writer.js";

const LEAST_TURNED: Bytes = 5_000_000;
/** Share of the private-memory gain; if RSS gained more, the child allocated new memory. */
const MOST_OF_OWN = 0.5;
/** The recorded program's own series. */
const ROOT_SERIES = 0;

export class ForkedPages {
  /** For children: the newest readings, and those when private memory was first read. */
  readonly #newest = new Map<number, Map<Metric, Bytes>>();
  readonly #first = new Map<number, ReadonlyMap<Metric, Bytes>>();

  polled(rows: readonly MetricRow[]): void {
    for (const { series, metric, value } of rows) {
      if (series !== ROOT_SERIES && (metric === "ussBytes" || metric === "rssBytes")) {
        const figures = this.#newest.get(series) ?? new Map<Metric, Bytes>();
        this.#newest.set(series, figures);
        figures.set(metric, value);
      }
    }
    for (const [series, figures] of this.#newest) {
      if (!this.#first.has(series) && figures.has("ussBytes") && figures.has("rssBytes")) {
        this.#first.set(series, new Map(figures));
      }
    }
  }

  get turnPrivate(): boolean {
    return [...this.#first].some(([series, before]) => {
      const gain = (metric: Metric) =>
        (this.#newest.get(series)?.get(metric) ?? 0) - (before.get(metric) ?? 0);
      const turned = gain("ussBytes");
      return turned >= LEAST_TURNED && gain("rssBytes") < MOST_OF_OWN * turned;
    });
  }
}
