/**
 * Receivers of alerts, as the configuration of `serve` writes them:
 *
 *     receivers:
 *       - {alertmanager: "http://alertmanager:9093"}
 *       - {webhook: "https://hooks.example.com/memory", token_file: hook.token}
 *       - {slack: "https://hooks.slack.com/services/...", template: "{state}: {summary} {link}"}
 *       - {pagerduty: "https://events.pagerduty.com/v2/enqueue", key_file: pagerduty.key, severity: critical}
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import type { Millis } from "../../model/base/units.js";
import {
  ALERT_SEVERITIES,
  type AlertReceiverJson,
  type AlertSeverity,
} from "../../model/documents/alert_document.js";
import { duration } from "../../model/settings/settings_file.js";
import { TEMPLATE_NAMES, unknownNameIn } from "./template.js";
import { uniqueName } from "./unique_name.js";

export const RECEIVER_KINDS = ["alertmanager", "webhook", "slack", "pagerduty"] as const;
export type ReceiverKind = AlertReceiverJson["kind"];

export interface Receiver {
  /** Of its kind, address and severity: what was sent to it is remembered by this. */
  readonly key: string;
  /** Unique among the receivers. */
  readonly name: string;
  readonly kind: ReceiverKind;
  readonly url: string;
  /** Its bearer token, or PagerDuty's routing key, is read from this file at each use; null: none. */
  readonly secretFile: string | null;
  /** Only alerts at least as severe. */
  readonly severity: AlertSeverity;
  /** null: the usual text. */
  readonly template: string | null;
  /** How long after a notification about a firing alert it is repeated. */
  readonly repeatMs: Millis;
  /** Whether its address may be of this host or its local network. */
  readonly allowsLocal: boolean;
}

const REPEAT_MS: Millis = 4 * 3_600_000;

const url = z
  .string()
  .max(4096)
  .refine((text) => /^https?:\/\//i.test(text) && URL.canParse(text), {
    error: "expected an address such as https://hooks.example.com/memory",
  })
  .refine((text) => !URL.canParse(text) || new URL(text).username === "", {
    error: "a password in an address would be shown; use token_file",
  });

export const RECEIVER = z
  .strictObject({
    name: z.string().min(1).max(200).optional(),
    alertmanager: url.optional(),
    webhook: url.optional(),
    slack: url.optional(),
    pagerduty: url.optional(),
    token_file: z.string().min(1).max(4096).optional(),
    key_file: z.string().min(1).max(4096).optional(),
    severity: z.enum(ALERT_SEVERITIES).optional(),
    template: z
      .string()
      .min(1)
      .max(4000)
      .refine((text) => unknownNameIn(text) === null, {
        error: ({ input }) =>
          `{${unknownNameIn(String(input))}} is unknown in a template; known are: ${TEMPLATE_NAMES.join(", ")}`,
      })
      .optional(),
    repeat: duration.optional(),
    allow_local: z.boolean().optional(),
  })
  .transform((written, context) => {
    const kinds = RECEIVER_KINDS.filter((kind) => written[kind] !== undefined);
    const [kind] = kinds;
    const fault =
      kind === undefined || kinds.length !== 1
        ? "expected one of alertmanager, webhook, slack and pagerduty, with its address"
        : kind === "pagerduty" && written.key_file === undefined
          ? "pagerduty needs key_file: a file with the routing key"
          : kind !== "pagerduty" && written.key_file !== undefined
            ? "key_file belongs to pagerduty"
            : kind === "pagerduty" && written.token_file !== undefined
              ? "pagerduty takes key_file, and no token_file"
              : kind === "alertmanager" && written.template !== undefined
                ? "Alertmanager has templates of its own: template belongs to webhook, slack and pagerduty"
                : kind === "alertmanager" && written.repeat !== undefined
                  ? "Alertmanager repeats by its own settings: repeat belongs to webhook, slack and pagerduty"
                  : null;
    if (kind === undefined || fault !== null) {
      context.addIssue({ code: "custom", message: fault ?? "" });
      return z.NEVER;
    }
    return { ...written, kind, url: String(written[kind]) };
  });

/** `beside`: the path of a file that is named relative to the configuration. */
export function receiversOf(
  written: readonly z.infer<typeof RECEIVER>[],
  beside: (name: string) => string,
): Receiver[] {
  const names = new Set<string>();
  const keys = new Set<string>();
  return written.map((each) => {
    const identity = JSON.stringify([each.kind, each.url, each.severity ?? "warning"]);
    const hash = createHash("sha256").update(identity).digest("hex").slice(0, 16);
    const secret = each.token_file ?? each.key_file;
    return {
      key: uniqueName(hash, keys),
      name: uniqueName(each.name ?? `${each.kind} ${new URL(each.url).host}`, names),
      kind: each.kind,
      url: each.url,
      secretFile: secret === undefined ? null : beside(secret),
      severity: each.severity ?? "warning",
      template: each.template ?? null,
      repeatMs: each.repeat ?? REPEAT_MS,
      allowsLocal: each.allow_local ?? false,
    };
  });
}
