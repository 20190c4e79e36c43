import type { Millis, TimeMs } from "../../model/base/units.js";

/** CLOCK_MONOTONIC in whole ms: the clock of segments and leases. */
export function monotonicMs(): Millis {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** The largest of several: a thread that loses its core between the two readings gets a difference that is too small. */
const anchor: TimeMs = Math.max(...Array.from({ length: 5 }, () => Date.now() - monotonicMs()));

/** Monotonic ms since 1970, not affected by clock changes during the run. */
export function nowMs(): TimeMs {
  return timeAt(monotonicMs());
}

/** A time of {@link monotonicMs} on the clock of {@link nowMs}. */
export function timeAt(monotonic: Millis): TimeMs {
  return anchor + monotonic;
}

/**
 * Returns a function that reports how much CPU time this process, with all its threads, has taken since this
 * call.
 */
export function processCpu(): () => Millis {
  const before = process.cpuUsage();
  return () => {
    const used = process.cpuUsage(before);
    return (used.user + used.system) / 1000;
  };
}

/**
 * CPU time that a synchronous step of this thread takes from now on. Only the whole process's CPU time is
 * available, which includes a worker that looks up holders at the same time, so the result is limited to the
 * elapsed time.
 */
export function threadCpu(): () => Millis {
  const cpu = processCpu();
  const before = performance.now();
  return () => Math.min(cpu(), performance.now() - before);
}
