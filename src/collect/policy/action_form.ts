/**
 * The actions that a policy allows:
 *
 *     actions:
 *       mode: dry-run                            off (default), dry-run or on
 *       when: {limit: 85%}                       the condition in which they are tried
 *       allow: [on_pressure, gc_collect, malloc_trim, recycle_worker, {command: [/usr/local/bin/relieve]}]
 *       limit: 4/h                               of each instance
 *       service_limit: 4/h                       of each service on this host
 *
 * They are tried in the order of `allow`.
 */
import { createHash } from "node:crypto";
import { basename } from "node:path";
import { z } from "zod";
import type { Millis } from "../../model/base/units.js";
import { ACTIONS, type ActionName } from "../../model/documents/action_document.js";
import { type Limit, limitIn } from "../../model/settings/limit.js";
import { duration, quantity } from "../../model/settings/settings_file.js";
import { CONDITION } from "./condition_form.js";
import type { Condition } from "./conditions.js";

/** Actions without settings. */
const PLAIN = ACTIONS.filter((name) => name !== "command" && name !== "webhook") as Exclude<
  ActionName,
  "command" | "webhook"
>[];

const ACTION = z.union(
  [
    z.enum(PLAIN).transform((name): AllowedAction => ({ name, key: name })),
    z.strictObject({ command: z.array(z.string().min(1).max(4096)).min(1).max(100) }).transform(
      ({ command }): AllowedAction => ({
        name: "command",
        key: `command ${basename(command[0] ?? "")} ${tag(JSON.stringify(command))}`,
        command,
      }),
    ),
    z
      .strictObject({
        webhook: z.string().refine((text) => /^https?:\/\//i.test(text) && URL.canParse(text)),
        allow_local: z.boolean().default(false),
      })
      .transform(
        ({ webhook, allow_local }): AllowedAction => ({
          name: "webhook",
          key: `webhook ${new URL(webhook).host} ${tag(webhook)}`,
          url: webhook,
          allowsLocal: allow_local,
        }),
      ),
  ],
  {
    error: `expected ${PLAIN.join(", ")}, {command: [PROGRAM, ...]} or {webhook: "https://..."}`,
  },
);

/** Tells two commands or addresses apart without their text, which may hold a secret. */
function tag(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 6);
}

export type AllowedAction =
  /** `key` names the action in the log. */
  | { readonly key: string; readonly name: Exclude<ActionName, "command" | "webhook"> }
  | { readonly key: string; readonly name: "command"; readonly command: readonly string[] }
  | {
      readonly key: string;
      readonly name: "webhook";
      readonly url: string;
      readonly allowsLocal: boolean;
    };

export interface ActionRule {
  readonly isDryRun: boolean;
  readonly when: Condition;
  readonly allow: readonly AllowedAction[];
  readonly limit: Limit;
  readonly serviceLimit: Limit;
  /** How long a program may take to end, and to be started again. */
  readonly graceMs: Millis;
}

export const limit = quantity(limitIn, "a limit such as 1/h or 10/d");
const USUAL_CONDITION: Condition = { kind: "limit", share: 0.85 };
const USUAL_LIMIT: Limit = { count: 4, perMs: 3_600_000 };
const USUAL_GRACE_MS: Millis = 40_000;
const LONGEST_GRACE_MS: Millis = 30 * 60_000;

/** null: actions are off. */
export const ACTION_RULE = z
  .strictObject({
    mode: z.enum(["off", "dry-run", "on"]).default("off"),
    when: CONDITION.optional(),
    allow: z.array(ACTION).min(1).max(20),
    limit: limit.optional(),
    service_limit: limit.optional(),
    grace: duration
      .refine((ms) => ms <= LONGEST_GRACE_MS, { error: "expected at most 30min" })
      .optional(),
  })
  .transform((rule): ActionRule | null =>
    rule.mode === "off"
      ? null
      : {
          isDryRun: rule.mode === "dry-run",
          when: rule.when ?? USUAL_CONDITION,
          allow: rule.allow,
          limit: rule.limit ?? USUAL_LIMIT,
          serviceLimit: rule.service_limit ?? USUAL_LIMIT,
          graceMs: rule.grace ?? USUAL_GRACE_MS,
        },
  );
