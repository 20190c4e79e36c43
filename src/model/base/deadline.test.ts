/** Work ends with the signal or the limit, and leaves nothing on the signal. */
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { withDeadline } from "./deadline.js";

const aborted = (signal: AbortSignal) =>
  new Promise<string>((resolve) => {
    const end = () => resolve((signal.reason as Error).name);
    signal.addEventListener("abort", end);
    if (signal.aborted) {
      end();
    }
  });

test("the signal ends the work, also one that was aborted before", async () => {
  const stop = new AbortController();
  const ended = withDeadline(stop.signal, 3_600_000, aborted);
  stop.abort();
  expect(await ended).toBe("AbortError");
  expect(await withDeadline(stop.signal, 3_600_000, aborted)).toBe("AbortError");
});

test("the limit ends the work", async () => {
  const keep = setInterval(() => {}, 1_000);
  expect(await withDeadline(new AbortController().signal, 1, aborted)).toBe("TimeoutError");
  clearInterval(keep);
});

test("work that ended or failed leaves nothing on the signal", async () => {
  const until = new AbortController().signal;
  for (let n = 0; n < 50; n++) {
    expect(await withDeadline(until, 3_600_000, async () => n)).toBe(n);
  }
  const failed = withDeadline(until, 3_600_000, () => Promise.reject(new Error("refused")));
  await expect(failed).rejects.toThrow("refused");
  expect(getEventListeners(until, "abort")).toEqual([]);
  const sets = Object.getOwnPropertySymbols(until).map((name): unknown => Reflect.get(until, name));
  const entries = sets.map((set) => (set as { size?: number } | null)?.size ?? 0);
  expect(Math.max(...entries)).toBeLessThan(10);
});
