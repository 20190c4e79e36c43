/** Rates of growth and shares in settings. */
import { bytesIn } from "../base/quantities.js";
import type { Bytes } from "../base/units.js";

/** Growth per hour: bytes, or a share of a level. */
export type Rate = { readonly bytes: Bytes } | { readonly share: number };

/** "20%/h", "100MiB/h", also per d or min; null for anything else. */
export function rateIn(text: string): Rate | null {
  const [, amount = "", unit = ""] = /^(.+?)\s*\/\s*(min|h|d)$/i.exec(text.trim()) ?? [];
  const perHour = { min: 60, h: 1, d: 1 / 24 }[unit.toLowerCase()] ?? 0;
  const [, percent] = /^(\d{1,6}(?:\.\d+)?)\s*%$/.exec(amount) ?? [];
  const bytes = bytesIn(amount);
  if (percent !== undefined) {
    return { share: (Number(percent) / 100) * perHour };
  }
  return bytes === null || perHour === 0 ? null : { bytes: bytes * perHour };
}

/** "10%": 0.1; null for anything else, and above 100 %. */
export function shareIn(text: string): number | null {
  const [, figure] = /^(\d{1,3}(?:\.\d+)?)\s*%$/.exec(text.trim()) ?? [];
  return figure === undefined || Number(figure) > 100 ? null : Number(figure) / 100;
}
