import { formatDurationBriefly } from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import type { VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { Observations } from "../evidence/observations.js";
import type { Finding } from "../rules/rule.js";
import { settledBy } from "../wording/window_needed.js";

/** In less time a leak, a cache that fills and a load that rises look the same (the leak bench, windows of 20 s). */
const SETTLED_MS: Millis = 25_000;
/** Known by how memory develops; what is counted (files, handles, cycles) is seen in any window. */
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

/** The finding as it may be stated after so short a window: what was seen, whom it points to, and the time that would
 * settle it. */
export function withYouth(finding: Finding, { windowMs }: Observations): Finding {
  if (windowMs >= SETTLED_MS || finding.about === "device" || !BY_DEVELOPMENT.has(finding.kind)) {
    return finding;
  }
  const alike =
    finding.says === "leak"
      ? "a program that starts, a cache that fills and a leak look the same"
      : "a program that is at rest and one that leaks slowly look the same";
  return {
    ...finding,
    kind: "insufficient-evidence",
    detail: `${finding.detail} In ${formatDurationBriefly(windowMs)} ${alike}; ${settledBy(NEEDED_MS)}.`,
    neededMs: NEEDED_MS,
  };
}
