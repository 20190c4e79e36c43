/**
 * Alerts between two starts of a server: `alerts.json` in its folder.
 */
import { join } from "node:path";
import { z } from "zod";
import type { TimeMs } from "../../model/base/units.js";
import { ALERT_CAUSES, ALERT_SEVERITIES } from "../../model/documents/alert_document.js";
import { readKept, writeKept } from "../files/kept_file.js";
import type { StoredAlert } from "./alert_book.js";
import type { Notified } from "./notifications.js";

export const ALERT_FILE = "alerts.json";
/** Raised when an older server could not read the file. */
const FORM = 1;

export interface AlertState {
  readonly alerts: readonly StoredAlert[];
  readonly notified: Notified;
  /** When the rules were last evaluated. */
  readonly evaluatedMs: TimeMs;
}

const timeMs = z
  .number()
  .int()
  .min(0)
  .max(Date.UTC(2200, 0, 1));
const severity = z.enum(ALERT_SEVERITIES);
const noted = z.looseObject({ atMs: timeMs, by: z.string(), note: z.string() });

/** What the server relies on; the rest is shown as it is. */
const STATE = z.object({
  form: z.literal(FORM),
  evaluatedMs: timeMs,
  alerts: z.array(
    z.looseObject({
      ...{ id: z.string(), service: z.string(), version: z.string(), host: z.string() },
      ...{ cause: z.enum(ALERT_CAUSES), severity, summary: z.string(), rules: z.array(z.string()) },
      state: z.enum(["pending", "firing", "resolved"]),
      ...{ sinceMs: timeMs, lastMs: timeMs, firingMs: timeMs.optional() },
      ...{ resolvedMs: timeMs.optional(), acknowledged: noted.optional() },
      silenced: noted.extend({ untilMs: timeMs }).optional(),
      holding: z.record(z.string(), timeMs),
    }),
  ),
  notified: z.array(
    z.object({
      ...{ receiver: z.string(), alert: z.string() },
      sent: z.object({
        ...{ state: z.enum(["firing", "acknowledged", "resolved"]), severity, atMs: timeMs },
      }),
    }),
  ),
});

const NONE: AlertState = { alerts: [], notified: new Map(), evaluatedMs: 0 };

/** A file that is damaged or of a newer version is put aside, with a warning. */
export function readAlerts(folder: string, warn: (text: string) => void): AlertState {
  return readKept(join(folder, ALERT_FILE), "earlier alerts", stateIn, warn) ?? NONE;
}

/** Throws an Error of zod or of JSON. */
function stateIn(text: string): AlertState {
  const { alerts, notified, evaluatedMs } = STATE.parse(JSON.parse(text));
  const byReceiver = new Map<string, Map<string, (typeof notified)[number]["sent"]>>();
  for (const { receiver, alert, sent } of notified) {
    const own = byReceiver.get(receiver) ?? new Map();
    byReceiver.set(receiver, own.set(alert, sent));
  }
  return { alerts: alerts as unknown as StoredAlert[], notified: byReceiver, evaluatedMs };
}

/** Throws an Error of node:fs. */
export function writeAlerts(folder: string, { alerts, notified, evaluatedMs }: AlertState): void {
  const rows = [...notified].flatMap(([receiver, own]) =>
    [...own].map(([alert, sent]) => ({ receiver, alert, sent })),
  );
  writeKept(join(folder, ALERT_FILE), { form: FORM, evaluatedMs, alerts, notified: rows });
}
