/**
 * The rules of alerts, and how the configuration of `serve` writes them:
 *
 *     alerts:
 *       rules:
 *         - when: {verdict: "*leak"}
 *         - {when: {growth: 50MiB/h}, for: 30min, match: {service: "checkout*"}, severity: critical}
 *       receivers:
 *         - {alertmanager: "http://alertmanager:9093"}
 *
 * Conditions:
 *
 *     {growth: 50MiB/h}           each instance of the newest version that grows gains at least that, with certainty
 *     {time_to_limit: 12h}        the first instance reaches its memory limit within that time at its rate
 *     {verdict: "*leak"}          the kind of the service's verdict; also a list of patterns
 *     {regression: growth}        a version grows faster than the one before it; level: needs a fifth more; any: either
 *     {gpu_fragmentation: 40%}    share of a device's reserved memory that is free, but in pieces too small to use
 *     {oom_kills: 1}              processes that the kernel killed for memory, `within: 1h`
 *     {restarts: 5}               restarts of one instance that follow its end, `within: 1h`
 *     {silent: 10min}             a host that reported, and whose processes did not end, sends nothing
 */
import { z } from "zod";
import { formatBytes, formatDurationBriefly, formatShare } from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import { ALERT_SEVERITIES, type AlertSeverity } from "../../model/documents/alert_document.js";
import { type Rate, rateIn, shareIn } from "../../model/settings/rate.js";
import { duration, quantity } from "../../model/settings/settings_file.js";
import { uniqueName } from "./unique_name.js";

const REGRESSIONS = ["growth", "level", "any"] as const;

export type AlertCondition =
  | { readonly kind: "growth"; readonly rate: Rate }
  | { readonly kind: "time-to-limit"; readonly ms: Millis }
  | { readonly kind: "verdict"; readonly patterns: readonly string[] }
  | { readonly kind: "regression"; readonly change: (typeof REGRESSIONS)[number] }
  | { readonly kind: "fragmentation"; readonly share: number }
  | { readonly kind: "oom-kills" | "restarts"; readonly count: number; readonly withinMs: Millis }
  | { readonly kind: "silence"; readonly ms: Millis };

export interface AlertRule {
  /** Unique among the rules. */
  readonly name: string;
  readonly condition: AlertCondition;
  /** How long the condition must hold before the alert fires. */
  readonly forMs: Millis;
  /** Patterns; `*` matches any text. */
  readonly match: { readonly service?: string | undefined; readonly version?: string | undefined };
  readonly severity: AlertSeverity;
}

const HOUR_MS: Millis = 3_600_000;
const DAY_MS: Millis = 24 * HOUR_MS;
const CONDITIONS =
  "growth, time_to_limit, verdict, regression, gpu_fragmentation, oom_kills, restarts or silent";
/** Longer windows would read the metrics of more than two days at each evaluation. */
const LONGEST_WITHIN_MS: Millis = DAY_MS;
/** A host is forgotten a day after its last reading. */
const LONGEST_SILENCE_MS: Millis = 12 * HOUR_MS;

const count = z.number().int().min(1).max(10_000);
const pattern = z.string().min(1).max(1000);

const WHEN = z
  .strictObject({
    growth: quantity(rateIn, "a rate such as 20%/h or 100MiB/h").optional(),
    time_to_limit: duration.optional(),
    verdict: z.union([pattern, z.array(pattern).min(1).max(20)]).optional(),
    regression: z.enum(REGRESSIONS).optional(),
    gpu_fragmentation: quantity(shareIn, "a share such as 40%").optional(),
    oom_kills: count.optional(),
    restarts: count.optional(),
    silent: duration.optional(),
    within: duration.optional(),
  })
  .transform((when, context): AlertCondition => {
    const condition = conditionOf(when);
    if (typeof condition === "string") {
      context.addIssue({ code: "custom", message: condition });
      return z.NEVER;
    }
    return condition;
  });

export const RULE = z.strictObject({
  name: z.string().min(1).max(200).optional(),
  when: WHEN,
  for: duration.optional(),
  match: z.strictObject({ service: pattern.optional(), version: pattern.optional() }).optional(),
  severity: z.enum(ALERT_SEVERITIES).optional(),
});

/** Settings of `when`, each already read. A string describes the error. */
function conditionOf({
  within,
  ...when
}: {
  readonly growth?: Rate | undefined;
  readonly time_to_limit?: Millis | undefined;
  readonly verdict?: string | string[] | undefined;
  readonly regression?: (typeof REGRESSIONS)[number] | undefined;
  readonly gpu_fragmentation?: number | undefined;
  readonly oom_kills?: number | undefined;
  readonly restarts?: number | undefined;
  readonly silent?: Millis | undefined;
  readonly within?: Millis | undefined;
}): AlertCondition | string {
  const given = Object.entries(when).filter(([, value]) => value !== undefined);
  if (given.length !== 1) {
    return `expected one condition: ${CONDITIONS}`;
  }
  const counts = when.oom_kills ?? when.restarts;
  if (within !== undefined && counts === undefined) {
    return "within belongs to oom_kills and restarts";
  }
  if (within !== undefined && within > LONGEST_WITHIN_MS) {
    return "expected at most 24h in within";
  }
  if ((when.silent ?? 0) > LONGEST_SILENCE_MS) {
    return "expected at most 12h in silent";
  }
  if (counts !== undefined) {
    const kind = when.oom_kills === undefined ? "restarts" : "oom-kills";
    return { kind, count: counts, withinMs: within ?? HOUR_MS };
  }
  if (when.growth !== undefined) {
    return { kind: "growth", rate: when.growth };
  }
  if (when.time_to_limit !== undefined) {
    return { kind: "time-to-limit", ms: when.time_to_limit };
  }
  if (when.verdict !== undefined) {
    return { kind: "verdict", patterns: [when.verdict].flat() };
  }
  if (when.regression !== undefined) {
    return { kind: "regression", change: when.regression };
  }
  return when.gpu_fragmentation === undefined
    ? { kind: "silence", ms: when.silent ?? 0 }
    : { kind: "fragmentation", share: when.gpu_fragmentation };
}

/** Rules as the configuration gives them, with names: its own, or the condition in words. */
export function rulesOf(written: readonly z.infer<typeof RULE>[]): AlertRule[] {
  const taken = new Set<string>();
  return written.map(({ name, when, for: forMs = 0, match = {}, severity = "warning" }) => {
    return {
      name: uniqueName(name ?? conditionText(when), taken),
      condition: when,
      forMs,
      match,
      severity,
    };
  });
}

const LEAKS = ["*leak", "*-growth", "graph-retention", "cycle-garbage"];

/**
 * The rules of a server whose configuration has none. The fleet's diagnosis decides from hours of readings, so its rules
 * need not hold for longer.
 */
export const USUAL_RULES: readonly AlertRule[] = rulesOf([
  { name: "leak", when: { kind: "verdict", patterns: LEAKS } },
  { when: { kind: "regression", change: "any" } },
  { when: { kind: "time-to-limit", ms: 12 * HOUR_MS }, severity: "critical" },
  { when: { kind: "fragmentation", share: 0.4 }, for: 30 * 60_000 },
  { when: { kind: "oom-kills", count: 1, withinMs: HOUR_MS }, severity: "critical" },
  { when: { kind: "restarts", count: 5, withinMs: HOUR_MS } },
  { when: { kind: "silence", ms: 10 * 60_000 } },
]);

/** "growth above 50.0 MiB/h" */
export function conditionText(condition: AlertCondition): string {
  switch (condition.kind) {
    case "growth": {
      const { rate } = condition;
      const amount = "bytes" in rate ? formatBytes(rate.bytes) : formatShare(rate.share);
      return `growth of at least ${amount}/h`;
    }
    case "time-to-limit":
      return `limit reached within ${formatDurationBriefly(condition.ms)}`;
    case "verdict":
      return `verdict ${condition.patterns.join(" or ")}`;
    case "regression":
      return condition.change === "any"
        ? "regression of growth or level"
        : `regression of ${condition.change}`;
    case "fragmentation":
      return `GPU fragmentation of at least ${formatShare(condition.share)}`;
    case "oom-kills":
      return `OOM kills: ${condition.count} within ${formatDurationBriefly(condition.withinMs)}`;
    case "restarts":
      return `restarts: ${condition.count} within ${formatDurationBriefly(condition.withinMs)}`;
    case "silence":
      return `silent for ${formatDurationBriefly(condition.ms)}`;
  }
}
