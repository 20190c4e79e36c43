/**
 * Alerts between two starts of a server: `alerts.json` in its folder. It is written beside and renamed, so a crash leaves
 * the last or the new one.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { TimeMs } from "../../model/base/units.js";
import { ALERT_CAUSES, ALERT_SEVERITIES } from "../../model/documents/alert_document.js";
import { reasonOf } from "../../model/errors/reason.js";
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
  const path = join(folder, ALERT_FILE);
  try {
    const state = stateIn(readFileSync(path, "utf8"));
    if (state !== null) {
      return state;
    }
    const aside = `${path}.unreadable`;
    renameSync(path, aside);
    warn(`earlier alerts cannot be read; they are kept in ${aside}`);
  } catch (error) {
    const { code, message } = reasonOf(error);
    if (code !== "ENOENT") {
      warn(`earlier alerts cannot be read: ${path}: ${message}`);
    }
  }
  return NONE;
}

function stateIn(text: string): AlertState | null {
  let parsed: z.ZodSafeParseResult<z.infer<typeof STATE>>;
  try {
    parsed = STATE.safeParse(JSON.parse(text));
  } catch {
    return null;
  }
  if (!parsed.success) {
    return null;
  }
  const { alerts, notified, evaluatedMs } = parsed.data;
  const byReceiver = new Map<string, Map<string, (typeof notified)[number]["sent"]>>();
  for (const { receiver, alert, sent } of notified) {
    const own = byReceiver.get(receiver) ?? new Map();
    byReceiver.set(receiver, own.set(alert, sent));
  }
  return { alerts: alerts as unknown as StoredAlert[], notified: byReceiver, evaluatedMs };
}

/** Throws an Error of node:fs. */
export function writeAlerts(folder: string, { alerts, notified, evaluatedMs }: AlertState): void {
  const path = join(folder, ALERT_FILE);
  const beside = `${path}.part`;
  const rows = [...notified].flatMap(([receiver, own]) =>
    [...own].map(([alert, sent]) => ({ receiver, alert, sent })),
  );
  const text = `${JSON.stringify({ form: FORM, evaluatedMs, alerts, notified: rows })}\n`;
  writeFileSync(beside, text, { mode: 0o600, flush: true });
  renameSync(beside, path);
}
