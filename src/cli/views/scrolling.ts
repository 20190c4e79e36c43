import type { Key } from "ink";

const PAGE = 10;

/** The first row shown after a key, never below 0; null where the key moves nothing. */
export function scrolled(firstRow: number, key: Key): number | null {
  const step = key.downArrow ? 1 : key.upArrow ? -1 : key.pageDown ? PAGE : key.pageUp ? -PAGE : 0;
  return step === 0 ? null : Math.max(0, firstRow + step);
}
