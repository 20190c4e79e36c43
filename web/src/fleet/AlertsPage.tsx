/** The alerts with line, holder and forecast, and the buttons that acknowledge and silence them. */

import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import type { AlertJson, AlertsJson } from "../../../src/model/documents/alert_document.js";
import { alertSubject, alertVersion } from "../../../src/model/documents/alert_text.js";
import { holderPathText } from "../../../src/model/documents/holder_path.js";
import { formatDuration, formatGrowth, formatWallClock } from "../format/numbers.js";
import { acknowledge, askAlerts, silence } from "./frame/api.js";
import { Frame, Waiting } from "./frame/Frame.js";
import { useNow } from "./frame/live.js";
import { serviceAddress, useQueryText } from "./frame/timeRange.js";
import type { PageProps } from "./ServicesPage.js";

const HOUR_MS = 3_600_000;
const SILENCES = [
  ["1 h", HOUR_MS],
  ["8 h", 8 * HOUR_MS],
  ["7 d", 7 * 24 * HOUR_MS],
] as const;

export function AlertsPage({ theme, toggleTheme }: PageProps) {
  const nowMs = useNow();
  const query = useQuery({
    queryKey: ["alerts", nowMs],
    queryFn: askAlerts,
    placeholderData: keepPreviousData,
  });
  return (
    <Frame path={[["Alerts", "/alerts"]]} {...{ theme, toggleTheme }}>
      {query.data === undefined ? (
        <Waiting error={query.error} />
      ) : (
        <Alerts document={query.data} nowMs={nowMs} />
      )}
    </Frame>
  );
}

function Alerts({ document, nowMs }: { document: AlertsJson; nowMs: number }) {
  const { alerts, rules, receivers, limits, evaluatedMs } = document;
  const open = alerts.filter(({ state }) => state !== "resolved");
  const resolved = alerts.filter(({ state }) => state === "resolved");
  return (
    <>
      <section className="panel" aria-label="Open alerts">
        <div className="toolbar">
          <b>Alerts</b>
          <span className="note">
            {open.filter(({ state }) => state === "firing").length} firing,{" "}
            {open.filter(({ state }) => state === "pending").length} pending
          </span>
        </div>
        {open.length === 0 && (
          <p className="empty">
            {evaluatedMs === 0
              ? "The rules are evaluated for the first time."
              : "No rule holds anywhere."}
          </p>
        )}
        {open.map((alert) => (
          <Alert key={alert.id} alert={alert} nowMs={nowMs} />
        ))}
      </section>
      {resolved.length > 0 && (
        <section className="panel" aria-label="Resolved alerts">
          <div className="toolbar">
            <b>Resolved within the last week</b>
          </div>
          {resolved.map((alert) => (
            <Alert key={alert.id} alert={alert} nowMs={nowMs} />
          ))}
        </section>
      )}
      <section className="panel fleet-alert-rules" aria-label="Rules and receivers">
        <div className="toolbar">
          <b>Rules and receivers</b>
        </div>
        <p>
          <span className="note">Rules: </span>
          {rules.join("; ")}
        </p>
        <p>
          <span className="note">Receivers: </span>
          {receivers.length === 0
            ? "none. Nobody is notified until the configuration of the server names one: tidemark serve --config FILE."
            : receivers.map((receiver) => receiverText(receiver)).join("; ")}
        </p>
        {limits.map((limit) => (
          <p key={limit}>{limit}</p>
        ))}
      </section>
    </>
  );
}

function receiverText({ name, acceptedMs, error }: AlertsJson["receivers"][number]): string {
  if (error !== undefined) {
    return `notifying ${name} failed: ${error}`;
  }
  const last =
    acceptedMs === undefined ? "nothing sent yet" : `last ${formatWallClock(acceptedMs, true)}`;
  return `${name} (${last})`;
}

function Alert({ alert, nowMs }: { alert: AlertJson; nowMs: number }) {
  const search = useQueryText();
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: (act: () => Promise<AlertJson>) => act(),
    onSuccess: () => client.invalidateQueries({ queryKey: ["alerts"] }),
  });
  const { id, service, host, state, severity, acknowledged, silenced } = alert;
  return (
    <article className="fleet-alert" aria-label={`${alertSubject(alert)}: ${alert.cause}`}>
      <header>
        <span className={`verdict-mark ${markOf(alert)}`}>{state}</span>
        <h3>
          {service === "" ? (
            host || "All hosts"
          ) : (
            <>
              <Link href={serviceAddress(service, search)}>{service}</Link> {alertVersion(alert)}
            </>
          )}
        </h3>
        <span className="note">
          {severity}, {timeText(alert, nowMs)}
        </span>
        {state !== "resolved" && (
          <span className="fleet-alert-acts">
            <button
              type="button"
              className="toggle"
              aria-pressed={acknowledged !== undefined}
              disabled={change.isPending}
              onClick={() => change.mutate(() => acknowledge(id, acknowledged !== undefined))}
            >
              {acknowledged === undefined ? "Acknowledge" : "Acknowledged"}
            </button>
            {silenced === undefined ? (
              SILENCES.map(([text, ms]) => (
                <button
                  key={text}
                  type="button"
                  className="toggle"
                  disabled={change.isPending}
                  onClick={() => change.mutate(() => silence(id, ms))}
                >
                  Silence {text}
                </button>
              ))
            ) : (
              <button
                type="button"
                className="toggle"
                aria-pressed={true}
                disabled={change.isPending}
                onClick={() => change.mutate(() => silence(id, 0))}
              >
                Silenced until {formatWallClock(silenced.untilMs, true)}
              </button>
            )}
          </span>
        )}
      </header>
      <p>{alert.summary}</p>
      <dl>
        {factsOf(alert).map(([term, text]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      {change.error !== null && <p role="alert">{change.error.message}</p>}
    </article>
  );
}

function markOf({ state, severity }: AlertJson): string {
  return state === "resolved"
    ? "verdict-calm"
    : severity === "critical"
      ? "verdict-alarm"
      : "fleet-alert-warning";
}

function timeText({ state, sinceMs, firingMs, resolvedMs }: AlertJson, nowMs: number): string {
  const ago = (timeMs: number) => `${formatDuration(Math.max(0, nowMs - timeMs))} ago`;
  return state === "resolved"
    ? `resolved ${ago(resolvedMs ?? nowMs)}`
    : state === "pending"
      ? `a rule began to hold ${ago(sinceMs)}`
      : `began to fire ${ago(firingMs ?? sinceMs)}`;
}

function factsOf({ line, holder, growth, forecast, rules }: AlertJson): [string, string][] {
  const facts: [string, string | null][] = [
    ["Line", line === undefined ? null : `${line.function} (${line.file}:${line.line})`],
    ["Holder", holder === undefined ? null : holderPathText(holder.path)],
    [
      "Growth",
      growth === undefined
        ? null
        : `${formatGrowth(growth.growthBytesPerHour)} on each instance (${formatGrowth(growth.low)} to ${formatGrowth(growth.high)})`,
    ],
    [
      "First limit in",
      forecast === undefined || forecast.msToLimit === 0
        ? null
        : `${formatDuration(forecast.msToLimit)} (${formatDuration(forecast.earliestMs)}${forecast.latestMs === 0 ? " or later" : ` to ${formatDuration(forecast.latestMs)}`})`,
    ],
    ["Rules", rules.join("; ")],
  ];
  return facts.flatMap(([term, text]) => (text === null ? [] : [[term, text] as [string, string]]));
}
