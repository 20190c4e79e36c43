/** The server's alerts: types of its API, of `tidemark fleet alerts --json` and of what receivers are sent. */
import type { Millis, TimeMs } from "../base/units.js";
import type { FrameJson } from "./documents.js";
import type { FleetHolderJson, FleetRateJson } from "./fleet_diagnosis_document.js";

/** Causes of alerts. A service and version have at most one alert for each cause. */
export const ALERT_CAUSES = [
  "growth",
  "level",
  "fragmentation",
  "oom-kill",
  "restart-loop",
  "silence",
] as const;
export type AlertCause = (typeof ALERT_CAUSES)[number];

export const ALERT_SEVERITIES = ["warning", "critical"] as const;
export type AlertSeverity = (typeof ALERT_SEVERITIES)[number];

/**
 * pending: a rule holds, but not for long enough yet. firing: receivers are notified. resolved: no rule has held for a
 * while.
 */
export type AlertState = "pending" | "firing" | "resolved";

export interface AlertJson {
  /** The same for each alert of this service, version and cause. */
  id: string;
  /** "": a host, or the whole server. */
  service: string;
  /** The first version that is affected; "": unknown, or all. */
  version: string;
  /** "": the alert is not about a host. */
  host: string;
  cause: AlertCause;
  state: AlertState;
  /** The highest of its rules. */
  severity: AlertSeverity;
  /** Names of the rules that hold now; of a resolved alert, those that held last. */
  rules: string[];
  /** One sentence. */
  summary: string;
  /** The line that allocates what grows, if an agent ran there. */
  line?: FrameJson;
  /** The object that keeps it. */
  holder?: FleetHolderJson;
  /** Of each instance. */
  growth?: FleetRateJson;
  /** Until the first instance reaches its limit, with its interval; 0: never at that rate. */
  forecast?: { msToLimit: Millis; earliestMs: Millis; latestMs: Millis };
  /** When a rule began to hold. */
  sinceMs: TimeMs;
  /** When it began to fire; absent before. */
  firingMs?: TimeMs;
  /** Set once it is resolved. */
  resolvedMs?: TimeMs;
  /** The last evaluation in which a rule held. */
  lastMs: TimeMs;
  acknowledged?: AlertNoteJson;
  /** No receiver is notified until then. */
  silenced?: AlertNoteJson & { untilMs: TimeMs };
}

export interface AlertNoteJson {
  atMs: TimeMs;
  /** As the person gave it; "" if nobody was named. */
  by: string;
  note: string;
}

/** A receiver of alerts, and whether it takes them. */
export interface AlertReceiverJson {
  /** As the configuration names it, or its kind and host. */
  name: string;
  kind: "alertmanager" | "webhook" | "slack" | "pagerduty";
  /** When it last accepted an alert; absent if it never has since the server started. */
  acceptedMs?: TimeMs;
  /** The last error; absent if the last attempt succeeded. */
  error?: string;
}

/** `tidemark.alerts/1` */
export interface AlertsJson {
  schema: "tidemark.alerts/1";
  /** The last evaluation of the rules, also before a restart of the server; 0: there was none. */
  evaluatedMs: TimeMs;
  /** The rules that are evaluated, by name. */
  rules: string[];
  receivers: AlertReceiverJson[];
  /** Firing first, then pending, then resolved; within each the most severe first, then the newest. */
  alerts: AlertJson[];
  /** What could not be seen, and why. */
  limits: string[];
}
