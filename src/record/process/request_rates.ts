/**
 * Requests a second of each process of a recording, where the program counts its requests.
 *
 *   not found: its mappings are read after 10 s, 20 s, 40 s ..., if their size has changed since; at most 10 min apart
 *   found:     the count is read at polls that are at least 10 s apart, of all processes at the same ones, so that rates of
 *              one time can be summed; two readings make a rate
 *
 * A worker that started during the recording counts from its start, so that none of its requests is left out. Not counted are
 * those between a worker's last poll and its end.
 */
import {
  findRequestCount,
  type RequestCount,
  readRequestCount,
  readStat,
  readStatus,
  startTimeMs,
} from "../../linux/index.js";
import type { Address, Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import type { TreePoll } from "./tree_poll.js";

const EVERY_MS: Millis = 10_000;
const RAREST_MS: Millis = 600_000;

interface Counted {
  address: Address | null;
  /** When it is searched again, and the distance of searches. */
  dueMs: TimeMs;
  distanceMs: Millis;
  /** When it was searched last, and the size of its mappings then (negative: search again) and now. */
  searchedMs: TimeMs;
  searchedBytes: Bytes;
  mappedBytes: Bytes;
  /** The newest reading; null: none yet. */
  last: { readonly requests: number; readonly timeMs: TimeMs } | null;
}

/** What is read of a process. */
export interface RequestCounts {
  readonly find: (pid: Pid) => Address | null;
  readonly read: (pid: Pid, address: Address) => RequestCount | null;
  /** null: it has ended. */
  readonly process: (
    pid: Pid,
  ) => { readonly ownPid: Pid | undefined; readonly startedMs: TimeMs } | null;
}

export class RequestRates {
  readonly #sinceMs: TimeMs;
  readonly #counts: RequestCounts;
  #known = new Map<number, Counted>();
  #dueMs: TimeMs = 0;

  /** `sinceMs`: start of the recording. */
  constructor(sinceMs: TimeMs, counts: RequestCounts = OF_SYSTEM) {
    this.#sinceMs = sinceMs;
    this.#counts = counts;
  }

  /** Adds the rates of the processes that live. */
  poll(poll: TreePoll): void {
    if (poll.timeMs < this.#dueMs) {
      return;
    }
    this.#dueMs = poll.timeMs + EVERY_MS;
    const living = new Map<number, Counted>();
    const mapped = new Map(
      poll.metrics.flatMap(({ series, metric, value }) =>
        metric === "vmsBytes" ? [[series, value] as const] : [],
      ),
    );
    for (const [pid, series] of poll.tree.livingSeries) {
      const process = this.#known.get(series) ?? {
        ...{ address: null, dueMs: 0, distanceMs: EVERY_MS, last: null },
        ...{ searchedMs: 0, searchedBytes: -1, mappedBytes: 0 },
      };
      living.set(series, process);
      process.mappedBytes = mapped.get(series) ?? process.mappedBytes;
      const rate =
        process.address !== null || isWorthSearching(process, poll.timeMs)
          ? this.#rateOf(pid, process, poll.timeMs)
          : null;
      if (rate !== null) {
        poll.measure({ series }, "requestsPerSecond", rate);
      }
    }
    this.#known = living;
  }

  #rateOf(pid: Pid, process: Counted, timeMs: TimeMs): number | null {
    const wasKnown = process.address !== null;
    const address = process.address ?? this.#counts.find(pid);
    const read = address === null ? null : this.#counts.read(pid, address);
    process.address = read === null ? null : address;
    if (read === null) {
      process.last = null;
      process.searchedMs = timeMs;
      process.searchedBytes = wasKnown ? -1 : process.mappedBytes;
      process.dueMs = timeMs + process.distanceMs;
      process.distanceMs = Math.min(RAREST_MS, 2 * process.distanceMs);
      return null;
    }
    process.distanceMs = EVERY_MS;
    const before = process.last ?? this.#start(pid, read);
    const { requests } = read;
    process.last = { requests, timeMs };
    return before === null || requests < before.requests || timeMs <= before.timeMs
      ? null
      : ((requests - before.requests) * 1000) / (timeMs - before.timeMs);
  }

  /** null: the count began before the recording. */
  #start(pid: Pid, { countingPid }: RequestCount): Counted["last"] {
    const process = this.#counts.process(pid);
    return process !== null && process.startedMs >= this.#sinceMs && process.ownPid === countingPid
      ? { requests: 0, timeMs: process.startedMs }
      : null;
  }
}

/** A program that begins to count maps another page. */
function isWorthSearching(process: Counted, timeMs: TimeMs): boolean {
  const { dueMs, searchedMs, searchedBytes, mappedBytes } = process;
  return timeMs >= dueMs && (mappedBytes !== searchedBytes || timeMs - searchedMs >= RAREST_MS);
}

const OF_SYSTEM: RequestCounts = {
  find: findRequestCount,
  read: readRequestCount,
  process: (pid) => {
    const [stat, status] = [readStat(pid), readStatus(pid)];
    return stat === null || status === null
      ? null
      : { ownPid: status.namespacePids.at(-1), startedMs: startTimeMs(stat.startTicks) };
  },
};
