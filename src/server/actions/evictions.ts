/**
 * Evicts pods for collectors, which have no permission for it:
 *
 *     granted lease of this pod ──namespace is allowed──> API server: disruption budgets ──> evicted
 */
import { type ApiServer, apiServerOf } from "../../kubernetes/api_server.js";
import { evictPod } from "../../kubernetes/eviction.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { ActionJson, PodJson } from "../../model/documents/action_document.js";
import { EVICTION_PATIENCE_MS, type EvictionAnswer } from "../../model/wire/actions.js";
import type { ActionBook } from "./action_book.js";
import type { ActionLimits } from "./action_limits.js";

/** The collector still waits for the answer then. */
const LONGEST_MS: Millis = EVICTION_PATIENCE_MS - 5_000;

export class Evictions {
  readonly #book: ActionBook;
  readonly #limits: () => ActionLimits;

  constructor(book: ActionBook, limits: () => ActionLimits) {
    this.#book = book;
    this.#limits = limits;
  }

  /** "" if nothing forbids the action before its lease; otherwise the reason. */
  forbids({ action, pod }: ActionJson): string {
    if (action !== "evict_pod") {
      return "";
    }
    if (pod === undefined) {
      return "the request names no pod";
    }
    const server = this.#server(pod);
    return typeof server === "string" ? server : "";
  }

  /** Rejects if it is unknown whether the pod was evicted. */
  async evict(id: string, pod: PodJson, nowMs: TimeMs): Promise<EvictionAnswer> {
    const server = this.#server(pod);
    const why = typeof server === "string" ? server : this.#book.evict(id, pod, nowMs);
    if (typeof server === "string" || why !== "") {
      return { evicted: false, why };
    }
    const refused = await evictPod(server, pod, AbortSignal.timeout(LONGEST_MS));
    if (refused !== "") {
      this.#book.evictionRefused(id);
    }
    return refused === "" ? { evicted: true } : { evicted: false, why: refused };
  }

  /** The API server, or why it is not asked. */
  #server({ namespace }: PodJson): ApiServer | string {
    return this.#limits().evictNamespaces.includes(namespace)
      ? (apiServerOf(process.env) ??
          "it runs outside Kubernetes, or without a ServiceAccount's token")
      : `it may not evict pods in namespace ${namespace} (actions.evict_namespaces of its configuration; healing.namespaces of the chart)`;
  }
}
