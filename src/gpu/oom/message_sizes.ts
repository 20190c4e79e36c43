/** The sizes that messages print: "1.50 GiB", "512 bytes", "21.95G", and what no device can have. */
import type { Bytes } from "../../model/units.js";

/** Two groups, figure and unit; digits without end are no figure, and would be matched for minutes. */
export const SIZE = "(\\d{1,20}(?:\\.\\d{1,9})?)(bytes|B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)";
/** The same as XLA prints it ("21.95G", "1.00M", "0B"): powers of 1024 under one letter. */
export const XLA_SIZE = "(\\d{1,20}(?:\\.\\d{1,9})?)([KMGT]?(?:iB|B)?)";

const POWERS: Readonly<Record<string, number>> = { K: 1, M: 2, G: 3, T: 4 };

/** Bytes of either pattern's two groups: PyTorch, Metal and Paddle call powers of 1024 "GB", too. */
export function bytesOf(figure: string, unit: string): Bytes {
  const power = unit === "bytes" ? 0 : (POWERS[unit[0] ?? ""] ?? 0);
  return Math.round(Number(figure) * 1024 ** power);
}

/** More than any device has: NVML's "not available" (2^64 - 1) that was printed as a size. */
const BEYOND_ALL = 2 ** 60;

/** null for a figure of what is there or in use that cannot be. A request may well be computed wrong. */
export function credible(bytes: Bytes | null): Bytes | null {
  return bytes === null || bytes >= BEYOND_ALL ? null : bytes;
}

/** Patterns that ignore where a text was wrapped see it so. */
export function squeeze(text: string): string {
  return text.replace(/\s+/g, "");
}
