/** The sizes that messages print: "1.50 GiB", "512 bytes", "21.95G"; and values that no device can have. */
import type { Bytes } from "../../../model/base/units.js";

/** Bounded, because an endless run of digits would take minutes to match. */
const FIGURE = "\\d{1,20}(?:\\.\\d{1,9})?";
const UNIT = "bytes|B|KiB|MiB|GiB|TiB|KB|MB|GB|TB";
/** XLA prints powers of 1024 under one letter: "21.95G", "1.00M", "0B". */
const XLA_UNIT = "[KMGT]?(?:iB|B)?";

/** Two groups, figure and unit. */
export const SIZE = `(${FIGURE})(${UNIT})`;
export const XLA_SIZE = `(${FIGURE})(${XLA_UNIT})`;

/** The same with the groups NAME and NAMEUnit. */
export const size = (name: string): string => `(?<${name}>${FIGURE})(?<${name}Unit>${UNIT})`;
export const xlaSize = (name: string): string => `(?<${name}>${FIGURE})(?<${name}Unit>${XLA_UNIT})`;
/** A number without a unit, as the group NAME. */
export const figure = (name: string): string => `(?<${name}>${FIGURE})`;
/** A whole number of up to `digits` digits, as the group NAME. */
export const whole = (name: string, digits = 20): string => `(?<${name}>\\d{1,${digits}})`;

const POWERS: Readonly<Record<string, number>> = { K: 1, M: 2, G: 3, T: 4 };

/** Bytes of a figure and its unit. PyTorch, Metal and Paddle use powers of 1024 for "GB" too. */
export function bytesOf(figure: string, unit: string): Bytes {
  const power = unit === "bytes" ? 0 : (POWERS[unit[0] ?? ""] ?? 0);
  return Math.round(Number(figure) * 1024 ** power);
}

/** More than any device has: NVML's "not available" (2^64 - 1) printed as a size. */
const BEYOND_ALL = 2 ** 60;

/** null for an impossible figure of total, free or used memory. A request may be computed wrong and is kept. */
export function credible(bytes: Bytes | null): Bytes | null {
  return bytes === null || bytes >= BEYOND_ALL ? null : bytes;
}

/** The text without white space: a pattern matched against it ignores where the text was wrapped. */
export function squeeze(text: string): string {
  return text.replace(/\s+/g, "");
}
