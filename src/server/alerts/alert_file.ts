/**
 * Alerts between two starts of a server: `alerts.json` in its folder. It is written beside and renamed, so a crash leaves
 * the last or the new one.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { reasonOf } from "../../model/errors/reason.js";
import type { StoredAlert } from "./alert_book.js";
import type { Notified } from "./notifications.js";

export const ALERT_FILE = "alerts.json";
/** Raised when an older server could not read the file. */
const FORM = 1;

export interface AlertState {
  readonly alerts: readonly StoredAlert[];
  /** By receiver and alert: what was sent last. */
  readonly notified: Notified;
}

const NONE: AlertState = { alerts: [], notified: {} };

/** A file that is damaged or of a newer version is put aside, with a warning. */
export function readAlerts(folder: string, warn: (text: string) => void): AlertState {
  const path = join(folder, ALERT_FILE);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = reasonOf(error);
    if (code !== "ENOENT") {
      warn(`the alerts of before cannot be read: ${path}: ${message}`);
    }
    return NONE;
  }
  const state = parsed(text);
  if (state === null) {
    const aside = `${path}.unreadable`;
    renameSync(path, aside);
    warn(`the alerts of before cannot be read; they are kept in ${aside}`);
  }
  return state ?? NONE;
}

function parsed(text: string): AlertState | null {
  try {
    const { form, alerts, notified } = JSON.parse(text) as { form: number } & AlertState;
    const isWhole = (alert: StoredAlert) =>
      typeof alert.id === "string" && typeof alert.holding === "object" && alert.holding !== null;
    return form === FORM && alerts.every(isWhole) && typeof notified === "object"
      ? { alerts, notified }
      : null;
  } catch {
    return null;
  }
}

/** Throws an Error of node:fs. */
export function writeAlerts(folder: string, state: AlertState): void {
  const path = join(folder, ALERT_FILE);
  const beside = `${path}.part`;
  const text = `${JSON.stringify({ form: FORM, ...state })}\n`;
  writeFileSync(beside, text, { mode: 0o600, flush: true });
  renameSync(beside, path);
}
