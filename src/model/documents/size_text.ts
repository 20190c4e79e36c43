/** Words about sizes that the terminal and the pages share. */
import type { Bytes } from "../base/units.js";
import type { FleetSizesJson, SizeState } from "./sizes_document.js";

const GIB = 2 ** 30;
const CENTS_BELOW = 100;

export const SIZE_STATE_TEXT: Readonly<Record<SizeState, string>> = {
  lower: "can be lower",
  higher: "too low",
  fits: "fits",
  unlimited: "no limit",
  leaks: "leaks",
  unknown: "not known yet",
};

/** "12.50 EUR"; null without a price. */
export function monthlyText(bytes: Bytes, price: FleetSizesJson["price"]): string | null {
  if (price === undefined) {
    return null;
  }
  const amount = (bytes / GIB) * price.perGibMonth;
  const digits = Math.abs(amount) < CENTS_BELOW ? 2 : 0;
  const figure = amount.toLocaleString("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${figure} ${price.currency}`;
}
