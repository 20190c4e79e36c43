/**
 * The policy of `tidemark watch`: which programs are recorded, and which of them get the agent. A YAML file:
 *
 *     server: {url: https://tidemark.internal, token_file: /run/secrets/tidemark}
 *     defaults: {warm_up: 1min, poll: 20s, agents: 20, turn: 10min, keep: 24h, disk: 2GiB}
 *     select:
 *       - match: {service: "checkout*", env: prod}
 *         agent: {share: 10%, most: 3}
 *         triggers:
 *           - {when: {growth: 20%/h, for: 15min}, do: [diagnose, census]}
 *         actions: {mode: dry-run, allow: [gc_collect, malloc_trim]}
 *       - match: {command: "*celery beat*"}
 *         watch: never
 *
 * The first rule that matches a program decides; a program that no rule matches gets the defaults.
 */
import { z } from "zod";
import type { Millis } from "../../model/base/units.js";
import { CAPTURES } from "../../model/documents/artifact_document.js";
import {
  duration,
  quantity,
  type SettingsKind,
  settingsIn,
  settingsText,
  size,
} from "../../model/settings/settings_file.js";
import { ACTION_RULE, limit } from "./action_form.js";
import { CONDITION, pattern, share } from "./condition_form.js";

function isUrl(text: string): boolean {
  return /^https?:/i.test(text) && URL.canParse(text);
}

/** The same every day, in local time. */
export interface DailyWindow {
  readonly fromMinute: number;
  /** If it is not above `fromMinute`, the time ends on the next day. */
  readonly untilMinute: number;
}

function windowIn(text: string): DailyWindow | null {
  const [, ...parts] = /^(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)$/.exec(text.trim()) ?? [];
  const [hour = 24, minute = 0, untilHour = 24, untilMinute = 0] = parts.map(Number);
  const isTime = hour < 24 && untilHour <= 24 && minute < 60 && untilMinute < 60;
  return isTime && parts.length === 4
    ? { fromMinute: hour * 60 + minute, untilMinute: (untilHour * 60 + untilMinute) % 1440 }
    : null;
}

/** Readings from outside, and turns with the agent, cost CPU each time. */
const atLeast = (leastMs: Millis, text: string) =>
  duration.refine((ms) => ms >= leastMs, { message: `expected at least ${text}` });

const count = z.number().int().min(0).max(10_000);

const MATCHES = {
  service: pattern.optional(),
  version: pattern.optional(),
  env: pattern.optional(),
  namespace: pattern.optional(),
  workload: pattern.optional(),
  container: pattern.optional(),
  user: pattern.optional(),
  command: pattern.optional(),
};

const TRIGGER = z
  .strictObject({
    when: CONDITION,
    do: z.array(z.enum(CAPTURES)).min(1),
    cooldown: duration.default(3_600_000),
  })
  .transform((trigger) => ({
    when: trigger.when,
    captures: trigger.do,
    cooldownMs: trigger.cooldown,
  }));

const POLICY = z.strictObject({
  server: z
    .strictObject({
      url: z.string().refine(isUrl, { message: "expected an address such as https://host:7070" }),
      token_file: z.string().min(1).optional(),
      action_token_file: z.string().min(1).optional(),
    })
    .optional(),
  defaults: z
    .strictObject({
      warm_up: duration.optional(),
      poll: atLeast(1_000, "1s").optional(),
      agents: count.optional(),
      turn: atLeast(10_000, "10s").optional(),
      keep: duration.optional(),
      disk: size.optional(),
      artifacts: z
        .strictObject({
          count: count.optional(),
          disk: size.optional(),
          keep: duration.optional(),
          per_hour: count.optional(),
          send: size.optional(),
          cpu: share.optional(),
          max_pause: duration.optional(),
        })
        .optional(),
      triggers: z.array(TRIGGER).optional(),
      actions: limit.optional(),
      remote: z.boolean().optional(),
    })
    .default({}),
  select: z
    .array(
      z
        .strictObject({
          match: z.strictObject({
            ...MATCHES,
            labels: z.record(z.string(), pattern).optional(),
          }),
          watch: z.enum(["never", "outside", "agent"]).default("agent"),
          agent: z
            .strictObject({
              share: share.optional(),
              most: count.optional(),
              canary: z.strictObject({ labels: z.record(z.string(), pattern) }).optional(),
              window: quantity(windowIn, "a time of day such as 02:00-02:10").optional(),
            })
            .optional(),
          triggers: z.array(TRIGGER).optional(),
          actions: ACTION_RULE.optional(),
          remote: z.boolean().optional(),
        })
        .superRefine(({ watch, agent, triggers, actions }, context) => {
          const isIdle = watch === "never";
          const idle =
            watch !== "agent" && agent !== undefined
              ? "agent"
              : isIdle && triggers !== undefined
                ? "triggers"
                : isIdle && actions !== undefined
                  ? "actions"
                  : "";
          if (idle !== "") {
            const message = `${idle} has no effect with watch: ${watch}`;
            context.addIssue({ code: "custom", message, path: [idle] });
          }
        }),
    )
    .default([]),
});

export type Policy = z.infer<typeof POLICY>;
export type Rule = Policy["select"][number];
export type Match = Rule["match"];
export type Trigger = z.infer<typeof TRIGGER>;

/** The triggers if neither the rule nor the defaults name any. */
export const DEFAULT_TRIGGERS: readonly Trigger[] = z.array(TRIGGER).parse([
  { when: { limit: "90%" }, do: ["diagnose", "ledger", "census"] },
  { when: { oom_kill: true }, do: ["diagnose", "ledger"] },
]);

/** Without a policy file: every program that may be entered. */
export const DEFAULT_POLICY: Policy = POLICY.parse({});

/** The JSON Schema of the file. @internal */
export function policySchema(): object {
  return z.toJSONSchema(POLICY, { io: "input" });
}

const numbered = (name: string) => (_: string, index: string) => `${name} ${Number(index) + 1}`;
const KIND: SettingsKind = {
  name: "policy",
  page: "docs/watch.md",
  place: (path) =>
    path
      .replace(/^select\.(\d+)/, numbered("rule"))
      .replace(/\btriggers\.(\d+)/, numbered("trigger"))
      .replace(/\ballow\.(\d+)/, numbered("action"))
      .replace(/(?<=rule \d+|trigger \d+|actions)\./g, ", "),
};

/**
 * Throws TidemarkError if the file cannot be read, is not YAML, or has an invalid setting; the error names the place.
 *
 */
export function readPolicy(path: string): Policy {
  return policyOf(settingsText(path, KIND), path);
}

/** @internal */
export function policyOf(text: string, path: string): Policy {
  return settingsIn(text, path, POLICY, KIND);
}
