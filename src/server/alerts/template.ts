/** The text of a notification: the usual one, or a template with names in braces. */
import { basename } from "node:path";
import { formatDuration, formatGrowth } from "../../model/base/numbers.js";
import type { AlertJson } from "../../model/documents/alert_document.js";

type Values = Readonly<Record<(typeof TEMPLATE_NAMES)[number], string>>;

export const TEMPLATE_NAMES = [
  "state",
  "severity",
  "service",
  "version",
  "host",
  "cause",
  "rules",
  "summary",
  "line",
  "holder",
  "growth",
  "time_to_limit",
  "link",
] as const;

const NAME = /\{([a-z_]+)\}/g;

/** The first name that no template knows; null: all are known. */
export function unknownNameIn(template: string): string | null {
  const known: readonly string[] = TEMPLATE_NAMES;
  const names = [...template.matchAll(NAME)].map(([, name = ""]) => name);
  return names.find((name) => !known.includes(name)) ?? null;
}

/** `escaped`: of the receiver's markup, for values; the template is the operator's own. */
export function filled(
  template: string,
  values: Values,
  escaped: (text: string) => string = (text) => text,
): string {
  return template.replace(NAME, (_, name: string) => escaped(values[name as keyof Values]));
}

/** Unknown values are "". */
export function valuesOf(alert: AlertJson, link: string): Values {
  const { line, holder, growth, forecast } = alert;
  return {
    state: alert.state,
    severity: alert.severity,
    service: alert.service,
    version: alert.version,
    host: alert.host,
    cause: alert.cause,
    rules: alert.rules.join(", "),
    summary: alert.summary,
    line: line === undefined ? "" : `${line.function} (${basename(line.file)}:${line.line})`,
    holder: holder === undefined ? "" : holder.path.join(" → "),
    growth: growth === undefined ? "" : formatGrowth(growth.growthBytesPerHour),
    time_to_limit:
      forecast === undefined || forecast.msToLimit === 0 ? "" : formatDuration(forecast.msToLimit),
    link,
  };
}
