/** How often collectors may act, as far as the server allows it. */
import type { Millis } from "../../model/base/units.js";
import type { Limit } from "../../model/settings/limit.js";

export interface ActionLimits {
  readonly service: Limit;
  /** Of all services. */
  readonly fleet: Limit;
  /** Namespaces whose pods the server may evict. */
  readonly evictNamespaces: readonly string[];
}

const HOUR: Millis = 3_600_000;

export const USUAL_ACTION_LIMITS: ActionLimits = {
  service: { count: 4, perMs: HOUR },
  fleet: { count: 20, perMs: HOUR },
  evictNamespaces: [],
};
