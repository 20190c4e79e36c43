/** Prometheus' text format, version 0.0.4. Source: https://prometheus.io/docs/instrumenting/exposition_formats/ */

export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "gauge" | "counter";
  readonly values: readonly {
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
}

export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export function expositionOf(families: readonly MetricFamily[]): string {
  return families
    .filter(({ values }) => values.length > 0)
    .map(
      ({ name, help, type, values }) =>
        `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${values
          .map(({ labels, value }) => `${name}${labelText(labels)} ${value}\n`)
          .join("")}`,
    )
    .join("");
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) =>
      `${name}="${value.replace(/[\\"\n]/g, (sign) => (sign === "\n" ? "\\n" : `\\${sign}`))}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
