/** The window that a page shows; the address keeps it, so that a copied address shows the same. */
import { useCallback, useMemo } from "react";
import { useLocation, useSearch } from "wouter";
import type { Millis, TimeMs } from "../../../../src/model/base/units.js";

export interface TimeRange {
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
}

export const SPANS: readonly (readonly [string, Millis])[] = [
  ["15m", 900_000],
  ["1h", 3_600_000],
  ["6h", 21_600_000],
  ["1d", 86_400_000],
  ["7d", 604_800_000],
  ["30d", 2_592_000_000],
];
const USUAL = "1h";

/** A range up to now moves forward; one with both ends stays. */
export interface ChosenRange {
  /** "1h"; null: a range with both ends. */
  readonly span: string | null;
  /** The range at this moment; `nowMs` is rounded, so that a page does not send a new request at each redraw. */
  readonly range: TimeRange;
}

/** `search`: of the address. */
export function rangeIn(search: string, nowMs: TimeMs): ChosenRange {
  const query = new URLSearchParams(search);
  const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
  if (from > 0 && to > from) {
    return { span: null, range: { startMs: from, endMs: to } };
  }
  const [span, ms] = SPANS.find(([name]) => name === query.get("since")) ??
    SPANS.find(([name]) => name === USUAL) ?? ["1h", 3_600_000];
  return { span, range: { startMs: nowMs - ms, endMs: nowMs } };
}

/** The address of a service's page; it keeps the time range of the address with this search. */
export function serviceAddress(name: string, search = ""): string {
  return withRange("/service", search, { name });
}

/** The address of a page with `parameters`; it keeps the time range of the address with this search. */
export function withRange(
  path: string,
  search: string,
  parameters: Record<string, string> = {},
): string {
  const query = new URLSearchParams(parameters);
  for (const [key, value] of new URLSearchParams(search)) {
    if (["since", "from", "to"].includes(key)) {
      query.set(key, value);
    }
  }
  return query.size === 0 ? path : `${path}?${query}`;
}

/** The query of the address. It is read from the browser, because wouter's is decoded already, and names may contain "%". */
export function useQueryText(): string {
  useSearch(); // renders again when it changes
  return location.search.slice(1);
}

export type Address = ReturnType<typeof useAddress>;

/** The chosen range, the other choices of the address, and how to change them. */
export function useAddress(nowMs: TimeMs) {
  const search = useQueryText();
  const [path, go] = useLocation();
  const chosen = useMemo(() => rangeIn(search, nowMs), [search, nowMs]);
  const change = useCallback(
    (values: Record<string, string | null>) => {
      const query = new URLSearchParams(search);
      for (const [name, value] of Object.entries(values)) {
        if (value === null) {
          query.delete(name);
        } else {
          query.set(name, value);
        }
      }
      const text = query.toString();
      go(text === "" ? path : `${path}?${text}`, { replace: true });
    },
    [search, path, go],
  );
  const get = useCallback((name: string) => new URLSearchParams(search).get(name), [search]);
  return { ...chosen, search, get, change };
}
