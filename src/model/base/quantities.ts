/** Sizes, durations and addresses as people write them, on the command line and in configuration files. */
import type { Bytes, Millis } from "./units.js";

const PREFIXES = ["", "k", "m", "g", "t"];

const DURATION_UNITS: Record<string, Millis> = {
  ms: 1,
  "": 1000,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Longest accepted duration: servers keep history for years. */
const LONGEST_DURATION: Millis = 3_653 * 86_400_000;

/** "4096", "64K" and "64KiB" of 1024 B, "10MB" of 10^6 B (IEC 80000-13); null for anything else. */
export function bytesIn(text: string): Bytes | null {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?$/i.exec(text.trim());
  if (match === null) {
    return null;
  }
  const [, figure, prefix = "", rest = ""] = match;
  const base = rest.toLowerCase() === "b" ? 1000 : 1024;
  const bytes = Math.round(Number(figure) * base ** PREFIXES.indexOf(prefix.toLowerCase()));
  return Number.isSafeInteger(bytes) ? bytes : null;
}

/** "30s", "5min", "2h"; a plain number is in seconds; null for anything else, and for more than ten years. */
export function durationIn(text: string): Millis | null {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d|)$/i.exec(text.trim());
  const unit = match ? DURATION_UNITS[(match[2] ?? "").toLowerCase()] : undefined;
  const ms = match && unit !== undefined ? Number(match[1]) * unit : Number.NaN;
  return ms >= 1 && ms <= LONGEST_DURATION ? ms : null;
}

/** "127.0.0.1:7070", "[::1]:7070"; ":7070" and "7070" are on loopback; null for anything else. */
export function addressIn(text: string): { readonly host: string; readonly port: number } | null {
  const [, bracketed, plain, portText] =
    /^(?:(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):)?(\d{1,5})$/.exec(text) ?? [];
  const port = Number(portText ?? "-1");
  return port >= 0 && port <= 65_535 ? { host: bracketed ?? (plain || "127.0.0.1"), port } : null;
}
