import { formatDurationBriefly } from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import type { VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { Observations } from "../evidence/observations.js";
import type { Finding } from "../rules/rule.js";
import { settledBy } from "../wording/window_needed.js";

/** In less time a leak, a filling cache and a rising load look the same (leak bench, windows of 20 s). */
const SETTLED_MS: Millis = 25_000;
/** Kinds that are recognized by how memory develops; counts (files, handles, cycles) are reliable in any window. */
const BY_DEVELOPMENT: ReadonlySet<VerdictKind | null> = new Set<VerdictKind>([
  "steady",
  "warm-up",
  "cache-plateau",
  "python-leak",
  "native-leak",
  "allocator-retention",
  "graph-retention",
  "child-growth",
]);
const NEEDED_MS: Millis = 60_000;

/**
 * The finding as stated after such a short window: what was observed, which site it points to, and the window
 * that would settle it.
 */
export function withYouth(finding: Finding, observations: Observations): Finding {
  const { windowMs, total } = observations;
  if (windowMs >= SETTLED_MS || finding.about === "device" || !BY_DEVELOPMENT.has(finding.kind)) {
    return finding;
  }
  const alike =
    finding.says === "leak" || total.low > 0
      ? "a starting program, a filling cache and a leak look the same"
      : "an idle program and a slow leak look the same";
  return {
    ...finding,
    kind: "insufficient-evidence",
    detail: `${finding.detail} In ${formatDurationBriefly(windowMs)} ${alike}; ${settledBy(observations, NEEDED_MS)}.`,
    neededMs: NEEDED_MS,
  };
}
