/** One life of one instance, from a row of its series with its readings. */
import type { Bytes, Pid, TimeMs } from "../../../model/base/units.js";
import type { Window } from "../../interface/window.js";
import type { Rows } from "../row_database.js";
import { CARRY_MS } from "./gauge.js";
import { byProcess } from "./process_parts.js";

/** Where a process ran, and when it was recorded. */
interface Placed {
  readonly host: string;
  readonly pod: string;
  readonly container: string;
  /** 0: unknown. */
  readonly pid: Pid;
  /** When its recording began, and when it was last seen. */
  readonly recordedMs: TimeMs;
  readonly lastMs: TimeMs;
}

export interface StoredProcess extends Placed {
  /** The name of its stream. */
  readonly process: string;
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
    container: text("container"),
    pid: number("pid"),
    version: text("version"),
    startedMs: number("started_ms"),
    endedMs: runs ? null : ended || lastMs,
    recordedMs: number("recorded_ms"),
    lastMs,
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
 * "web-3", "web-3 #2". The recordings of one process are of one instance, and have the same start. */
function withInstances<Process extends StoredProcess>(
  processes: readonly Process[],
): (Omit<Process, keyof Placed> & { readonly instance: string })[] {
  const ends = new Map<string, TimeMs[]>();
  return byProcess(processes, (process) => process).flatMap((parts) => {
    const [first] = parts;
    const startedMs = first?.startedMs ?? 0;
    const name = first?.pod || first?.host || (first?.process ?? "").slice(0, 8);
    const taken = ends.get(name) ?? [];
    ends.set(name, taken);
    const free = taken.findIndex((endedMs) => endedMs <= startedMs);
    const slot = free < 0 ? taken.length : free;
    taken[slot] = parts.at(-1)?.endedMs ?? Number.POSITIVE_INFINITY;
    const instance = slot === 0 ? name : `${name} #${slot + 1}`;
    return parts.map((part, at) => {
      const {
        host: _h,
        pod: _p,
        container: _c,
        pid: _i,
        recordedMs: _r,
        lastMs,
        ...process
      } = part;
      const endedMs = at < parts.length - 1 ? (part.endedMs ?? lastMs) : part.endedMs;
      return { ...process, startedMs, endedMs, instance };
    });
  });
}
