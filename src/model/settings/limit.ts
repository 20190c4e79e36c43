/** Limits on how often something may be done, in settings. */
import type { Millis, TimeMs } from "../base/units.js";

export interface Limit {
  readonly count: number;
  readonly perMs: Millis;
}

const PER: Readonly<Record<string, Millis>> = { min: 60_000, h: 3_600_000, d: 86_400_000 };

/** "1/h", "10/d", "0/h" (never); null for anything else. */
export function limitIn(text: string): Limit | null {
  const [, count, unit = ""] = /^(\d{1,5})\s*\/\s*(min|h|d)$/i.exec(text.trim()) ?? [];
  const perMs = PER[unit.toLowerCase()];
  return count === undefined || perMs === undefined ? null : { count: Number(count), perMs };
}

/** "4/h" */
export function limitText({ count, perMs }: Limit): string {
  const [unit = "h"] = Object.entries(PER).find(([, ms]) => ms === perMs) ?? [];
  return `${count}/${unit}`;
}

/** Whether one more at `nowMs` keeps the limit. `times`: of all others; a little in the future count, too, for clocks that differ. */
export function isWithin(
  { count, perMs }: Limit,
  times: readonly TimeMs[],
  nowMs: TimeMs,
): boolean {
  return times.filter((timeMs) => Math.abs(timeMs - nowMs) < perMs).length < count;
}
