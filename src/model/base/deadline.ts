/** Time limits for work that a longer-lived signal also ends. */
import type { Millis } from "./units.js";

/**
 * `signal` is aborted with `until`, or after `limitMs`. Nothing stays on `until` when the work has ended, whereas
 * AbortSignal.any() leaves an entry on it for as long as `until` lives (Node 20).
 */
export async function withDeadline<Result>(
  until: AbortSignal,
  limitMs: Millis,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const ending = new AbortController();
  const abort = () => ending.abort(until.reason);
  const expire = () => ending.abort(new DOMException("no answer in time", "TimeoutError"));
  const timer = setTimeout(expire, limitMs).unref();
  until.addEventListener("abort", abort);
  try {
    if (until.aborted) {
      abort();
    }
    return await work(ending.signal);
  } finally {
    clearTimeout(timer);
    until.removeEventListener("abort", abort);
  }
}
