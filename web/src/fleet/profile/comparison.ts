/** What a service can be compared with: another version, its own past, or its other instances. */
import type { Millis } from "../../../../src/model/base/units.js";
import type { InstanceRowJson } from "../../../../src/model/documents/fleet_document.js";
import type { ComparedSide } from "../frame/api.js";
import type { TimeRange } from "../frame/timeRange.js";

/** "Instance" is the instance `of` against all others. */
export type Comparison =
  | { readonly kind: "versions"; readonly left: string; readonly right: string }
  | { readonly kind: "earlier"; readonly ago: Ago }
  | { readonly kind: "instance"; readonly of: string };

/** "same": the time of the same length just before. */
export const AGO = ["same", "1d", "7d"] as const;
export type Ago = (typeof AGO)[number];
const AGO_MS: Record<Exclude<Ago, "same">, Millis> = { "1d": 86_400_000, "7d": 604_800_000 };

/** The versions with an instance in the chosen time; the one that started last comes first. */
export function versionsOf(instances: readonly InstanceRowJson[]): string[] {
  const newest = [...instances].sort((a, b) => b.startedMs - a.startedMs);
  return [...new Set(newest.map(({ version }) => version))];
}

/** The comparison that the address names; where it names none, or one that this service does not have, a usual one. */
export function comparisonIn(
  get: (name: string) => string | null,
  versions: readonly string[],
  streams: readonly string[],
): Comparison {
  const [newest = "", former = newest] = versions;
  const kind = get("with") ?? (versions.length > 1 ? "versions" : "earlier");
  const [first] = streams;
  if (kind === "versions" && versions.length > 1) {
    const known = (name: string | null, usual: string) =>
      name !== null && versions.includes(name) ? name : usual;
    return { kind, left: known(get("left"), former), right: known(get("right"), newest) };
  }
  if (kind === "instance" && first !== undefined && streams.length > 1) {
    return { kind, of: streams.find((stream) => stream === get("of")) ?? first };
  }
  return { kind: "earlier", ago: AGO.find((ago) => ago === get("ago")) ?? "same" };
}

/** Both sides, the one that the other is compared with first. */
export function sidesOf(
  comparison: Comparison,
  service: string,
  range: TimeRange,
): readonly [ComparedSide, ComparedSide] {
  const named = `service_name=${JSON.stringify(service)}`;
  const whole = { name: "this time", selector: `{${named}}`, range };
  switch (comparison.kind) {
    case "versions": {
      const side = (version: string) => ({
        name: version || "no version",
        selector: `{${named}, version=${JSON.stringify(version)}}`,
        range,
      });
      return [side(comparison.left), side(comparison.right)];
    }
    case "instance": {
      const stream = JSON.stringify(comparison.of);
      return [
        { ...whole, name: "the others", selector: `{${named}, __stream__!=${stream}}` },
        {
          ...whole,
          name: comparison.of.slice(0, 8),
          selector: `{${named}, __stream__=${stream}}`,
        },
      ];
    }
    case "earlier": {
      const { ago } = comparison;
      const ms = ago === "same" ? range.endMs - range.startMs : AGO_MS[ago];
      const before = { startMs: range.startMs - ms, endMs: range.endMs - ms };
      const name = ago === "same" ? "the time before" : `${ago} earlier`;
      return [{ ...whole, name, range: before }, whole];
    }
  }
}
