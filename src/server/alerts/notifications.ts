/**
 * Notifications: their times and their forms.
 *
 * Alertmanager gets every firing alert at each evaluation, with an end a few evaluations ahead, as it expects of a client,
 * and a resolved alert for a while longer. The others get an alert when it begins to fire, when it is acknowledged
 * (PagerDuty), when it is resolved, and again after `repeat` while it fires and nobody has acknowledged it.
 *
 * Formats: Alertmanager's API v2 (`postableAlerts`), the webhook payload of Alertmanager in version 4, Slack's incoming
 * webhooks, and PagerDuty's Events API v2.
 */
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { AlertJson, AlertSeverity } from "../../model/documents/alert_document.js";
import { alertSubject } from "../../model/documents/alert_text.js";
import type { Receiver } from "./receivers.js";
import { filled, valuesOf } from "./template.js";

/** What was sent last: by key of a receiver, by alert. */
export type Notified = ReadonlyMap<string, ReadonlyMap<string, Sent>>;

export interface Sent {
  readonly state: "firing" | "acknowledged" | "resolved";
  readonly severity: AlertSeverity;
  readonly atMs: TimeMs;
}

/** One request. `alerts`: what is noted once it is accepted. */
export interface Notification {
  readonly body: object;
  readonly alerts: readonly (Omit<Sent, "atMs"> & { readonly id: string })[];
}

export interface Moment {
  readonly nowMs: TimeMs;
  /** Between two evaluations. */
  readonly everyMs: Millis;
  /** Of an alert, for people. */
  readonly linkOf: (alert: AlertJson) => string;
  /** Address of the server's pages. */
  readonly externalUrl: string;
  /** The secret of the receiver; "" if it has none. */
  readonly secret: string;
}

/** Evaluations after which Alertmanager takes an alert for resolved if it hears nothing. */
const ALIVE_EVALUATIONS = 4;
const RESOLVED_SENT_MS: Millis = 15 * 60_000;

export function notificationsFor(
  receiver: Receiver,
  alerts: readonly AlertJson[],
  sent: ReadonlyMap<string, Sent>,
  moment: Moment,
): Notification[] {
  // An alert that was critical when it was sent is also followed to its end.
  const isWanted = ({ id, severity }: AlertJson) =>
    receiver.severity === "warning" || severity === "critical" || isOpen(sent.get(id));
  const wanted = alerts.filter((alert) => alert.silenced === undefined && isWanted(alert));
  return receiver.kind === "alertmanager"
    ? forAlertmanager(wanted, moment)
    : wanted.flatMap((alert) => {
        const state = dueState(receiver, alert, sent.get(alert.id), moment.nowMs);
        return state === null
          ? []
          : [
              {
                body: bodyOf(receiver, alert, state, moment),
                alerts: [{ id: alert.id, state, severity: alert.severity }],
              },
            ];
      });
}

function forAlertmanager(alerts: readonly AlertJson[], moment: Moment): Notification[] {
  const { nowMs, everyMs, linkOf } = moment;
  const current = alerts.filter(
    ({ state, resolvedMs = 0 }) =>
      state === "firing" || (state === "resolved" && nowMs - resolvedMs < RESOLVED_SENT_MS),
  );
  const body = current.map((alert) => ({
    labels: labelsOf(alert),
    annotations: annotationsOf(alert, linkOf(alert)),
    startsAt: timeText(alert.firingMs ?? alert.sinceMs),
    endsAt: timeText(alert.resolvedMs ?? nowMs + ALIVE_EVALUATIONS * everyMs),
    generatorURL: linkOf(alert),
  }));
  return body.length === 0
    ? []
    : [
        {
          body,
          alerts: current.map(({ id, state, severity }) => ({
            ...{ id, severity, state: state === "resolved" ? "resolved" : "firing" },
          })),
        },
      ];
}

/** null: nothing has to be sent. */
function dueState(
  { kind, repeatMs }: Receiver,
  { state, acknowledged, severity }: AlertJson,
  sent: Sent | undefined,
  nowMs: TimeMs,
): Sent["state"] | null {
  if (state === "resolved") {
    return isOpen(sent) ? "resolved" : null;
  }
  if (state === "pending") {
    return null;
  }
  if (!isOpen(sent)) {
    return acknowledged === undefined ? "firing" : null;
  }
  if (acknowledged !== undefined) {
    return kind === "pagerduty" && sent.state !== "acknowledged" ? "acknowledged" : null;
  }
  const isWorse = severity === "critical" && sent.severity === "warning";
  return isWorse || nowMs - sent.atMs >= repeatMs ? "firing" : null;
}

function isOpen(sent: Sent | undefined): sent is Sent {
  return sent !== undefined && sent.state !== "resolved";
}

function bodyOf(
  { kind, name, template }: Receiver,
  alert: AlertJson,
  state: Sent["state"],
  moment: Moment,
): object {
  const link = moment.linkOf(alert);
  const values = valuesOf(alert, link);
  const own = (escaped?: (text: string) => string) =>
    template === null ? "" : filled(template, values, escaped).trim();
  // A template may have only names that are unknown for this alert.
  const plain = own() || alert.summary;
  switch (kind) {
    case "slack":
      return { text: own(slackText) || usualSlackText(alert, link) };
    case "pagerduty":
      return {
        routing_key: moment.secret,
        event_action: { firing: "trigger", acknowledged: "acknowledge", resolved: "resolve" }[
          state
        ],
        dedup_key: `tidemark-${alert.id}`,
        payload: {
          summary: plain.slice(0, 1024),
          source: alert.service || alert.host || "tidemark",
          severity: alert.severity,
          timestamp: timeText(alert.firingMs ?? alert.sinceMs),
          component: alert.service,
          class: alert.cause,
          custom_details: withoutEmpty({
            version: alert.version,
            ...annotationsOf(alert, link),
          }),
        },
        links: [{ href: link, text: "Open in Tidemark" }],
      };
    default: {
      const annotations = {
        ...annotationsOf(alert, link),
        ...(template === null ? {} : { text: plain }),
      };
      const labels = labelsOf(alert);
      return {
        version: "4",
        groupKey: alert.id,
        truncatedAlerts: 0,
        status: state === "resolved" ? "resolved" : "firing",
        receiver: name,
        groupLabels: labels,
        commonLabels: labels,
        commonAnnotations: annotations,
        externalURL: moment.externalUrl,
        alerts: [
          {
            status: state === "resolved" ? "resolved" : "firing",
            labels,
            annotations,
            startsAt: timeText(alert.firingMs ?? alert.sinceMs),
            // Go's zero time: it has not ended.
            endsAt:
              alert.resolvedMs === undefined ? "0001-01-01T00:00:00Z" : timeText(alert.resolvedMs),
            generatorURL: link,
            fingerprint: alert.id,
          },
        ],
      };
    }
  }
}

/** Labels identify an alert and route it: to Alertmanager, one that becomes critical is another. Empty ones are left out. */
function labelsOf({ service, version, host, cause, severity }: AlertJson): Record<string, string> {
  const alertname = `TidemarkMemory${nameOf(cause)}`;
  return withoutEmpty({ alertname, service, version, host, cause, severity });
}

function annotationsOf(alert: AlertJson, link: string): Record<string, string> {
  const { summary, line, holder, growth, time_to_limit: left, rules } = valuesOf(alert, link);
  return withoutEmpty({ summary, line, holder, growth, time_to_limit: left, rules, link });
}

function withoutEmpty(values: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
}

/** "oom-kill": "OomKill" */
function nameOf(cause: string): string {
  return cause.replace(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function timeText(timeMs: TimeMs): string {
  return new Date(timeMs).toISOString();
}

function usualSlackText(alert: AlertJson, link: string): string {
  const { state, severity, summary } = alert;
  const heading = `*${state}, ${severity}: ${slackText(alertSubject(alert))}*`;
  return [heading, slackText(summary), `<${slackUrl(link)}|Open in Tidemark>`].join("\n");
}

/** Slack's three special characters. */
function slackText(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function slackUrl(link: string): string {
  return slackText(link).replace(/\|/g, "%7C");
}
