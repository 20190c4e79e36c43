/** One life of one instance, from a row of its series with its readings. */
import type { Bytes, TimeMs } from "../../../model/base/units.js";
import type { Window } from "../../interface/window.js";
import type { Rows } from "../row_database.js";
import { CARRY_MS } from "./gauge.js";

export interface StoredProcess {
  /** The name of its stream. */
  readonly process: string;
  readonly host: string;
  readonly pod: string;
  readonly version: string;
  readonly startedMs: TimeMs;
  /** null: it runs. */
  readonly endedMs: TimeMs | null;
  /** 0: none is known. */
  readonly limitBytes: Bytes;
}

/** `row`: a series with `times`, `vals`, `last_ms`, `limit_bytes` and `verdict_limit`. */
export function processOf(
  row: Rows[number],
  { endMs }: Window,
): StoredProcess & { readonly readings: { readonly times: number[]; readonly values: number[] } } {
  const text = (name: string) => String(row[name] ?? "");
  const number = (name: string) => Number(row[name] ?? 0);
  const ended = number("ended_ms");
  const lastMs = number("last_ms");
  const runs = ended === 0 ? lastMs >= Math.min(endMs, Date.now()) - CARRY_MS : ended >= endMs;
  return {
    process: text("stream"),
    host: text("host"),
    pod: text("pod"),
    version: text("version"),
    startedMs: number("started_ms"),
    endedMs: runs ? null : ended || lastMs,
    limitBytes: number("limit_bytes") || number("verdict_limit"),
    readings: readingsIn(row) ?? { times: [], values: [] },
  };
}

/** Of the columns `times` and `vals`, with a prefix if there is one; null: there are none. */
export function readingsIn(
  row: Rows[number],
  prefix = "",
): { readonly times: number[]; readonly values: number[] } | null {
  const list = (name: string) => {
    const found = row[prefix === "" ? name : `${prefix}_${name}`];
    return found == null
      ? null
      : Array.from((found as unknown as { items: readonly number[] }).items, Number);
  };
  const [times, values] = [list("times"), list("vals")];
  return times === null || values === null ? null : { times, values };
}

/** The evidence about each service from its rows, in the order of `services`. */
export function byService<Process extends StoredProcess>(
  services: readonly string[],
  window: Window,
  rows: Rows,
  processIn: (row: Rows[number], window: Window) => Process,
) {
  return services.map((service) => ({
    service,
    window: { ...window },
    processes: withInstances(
      rows.filter((row) => row.service === service).map((row) => processIn(row, window)),
    ),
  }));
}

/** A pod is an instance. Processes of a host that run at the same time are several, and one that follows another is the same:
 * "web-3", "web-3 #2". */
function withInstances<Process extends StoredProcess>(
  processes: readonly Process[],
): (Omit<Process, "host" | "pod"> & { readonly instance: string })[] {
  const ends = new Map<string, TimeMs[]>();
  return processes.map(({ host, pod, ...process }) => {
    const name = pod || host || process.process.slice(0, 8);
    const taken = ends.get(name) ?? [];
    ends.set(name, taken);
    const free = taken.findIndex((endedMs) => endedMs <= process.startedMs);
    const slot = free < 0 ? taken.length : free;
    taken[slot] = process.endedMs ?? Number.POSITIVE_INFINITY;
    return { ...process, instance: slot === 0 ? name : `${name} #${slot + 1}` };
  });
}
