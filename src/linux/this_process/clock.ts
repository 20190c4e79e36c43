import type { Millis, TimeMs } from "../../model/base/units.js";

/** CLOCK_MONOTONIC in ms, whole: the clock of segments and leases. */
export function monotonicMs(): Millis {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

const anchor: TimeMs = Date.now() - monotonicMs();

/** Monotonic ms since 1970, not affected by clock changes during the run. */
export function nowMs(): TimeMs {
  return anchor + monotonicMs();
}

/** CPU time that this process, all its threads, takes from now on: to be asked at any later moment. */
export function processCpu(): () => Millis {
  const before = process.cpuUsage();
  return () => {
    const used = process.cpuUsage(before);
    return (used.user + used.system) / 1000;
  };
}

/**
 * CPU time that what this thread does without a pause takes from now on. Only the process's can be asked,
 * a worker that looks up holders meanwhile included: so it counts no further than the time that passes.
 */
export function threadCpu(): () => Millis {
  const cpu = processCpu();
  const before = performance.now();
  return () => Math.min(cpu(), performance.now() - before);
}
