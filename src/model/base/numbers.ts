/**
 * Human-readable numbers for the command line, the diagnosis, the verdicts on out-of-memory messages and the page.
 *
 * Bytes come in three precisions: three significant digits in tables and figures (`formatBytes`), two in sentences
 * (`formatBytesBriefly`), and two decimals if a text is compared with a PyTorch message (`formatBytesLikePyTorch`).
 * Negative numbers have an ASCII "-", which survives copying from a terminal; NaN is "–".
 */
import type { Bytes, Millis, TimeMs } from "./units.js";

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;
const MEBIBYTE: Bytes = 2 ** 20;
const SECOND: Millis = 1000;
const MINUTE: Millis = 60 * SECOND;
const HOUR: Millis = 60 * MINUTE;
const DAY: Millis = 24 * HOUR;
const NOT_A_NUMBER = "–";

// --- bytes ---------------------------------------------------------------------------------------

/** Three significant digits: "0 B", "640 KiB", "1.21 GiB", "-12.0 MiB". */
export function formatBytes(bytes: Bytes): string {
  return bytesWith(bytes, threeDigits);
}

/** "+1.20 MiB", "-3.00 KiB", "0 B". */
export function formatSignedBytes(bytes: Bytes): string {
  return signed(bytes, formatBytes(bytes));
}

/** Two significant digits, enough for a sentence: "12 MiB", "1.4 GiB". */
export function formatBytesBriefly(bytes: Bytes): string {
  return bytesWith(bytes, (value) => (value >= 9.95 ? value.toFixed(0) : value.toFixed(1)));
}

/** Two decimals, as PyTorch prints a size: "512 bytes", "1.50 GiB". */
export function formatBytesLikePyTorch(bytes: Bytes): string {
  const power = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  return power === 0
    ? `${bytes} bytes`
    : `${(bytes / 1024 ** power).toFixed(2)} ${BYTE_UNITS[power]}`;
}

// --- rates ---------------------------------------------------------------------------------------

/** A slope in bytes per millisecond, for a sentence: "12 MiB/h". */
export function formatSlopeBriefly(bytesPerMs: number): string {
  return `${formatBytesBriefly(bytesPerMs * HOUR)}/h`;
}

/** "1.3 GiB/h (1.1 GiB/h to 1.5 GiB/h)"; without the interval if both of its ends print as the slope does. Bytes per ms. */
export function formatSlopeInterval(slope: number, low: number, high: number): string {
  const [own, from, to] = [slope, low, high].map(formatSlopeBriefly) as [string, string, string];
  return from === to && from === own ? own : `${own} (${from} to ${to})`;
}

/** Always in MiB/h, so that runs are easy to compare: "+12.0 MiB/h", "-2,048 MiB/h"; what is printed as zero has no sign. */
export function formatGrowth(bytesPerHour: number): string {
  if (!Number.isFinite(bytesPerHour)) {
    return NOT_A_NUMBER;
  }
  const mebibytes = Math.abs(bytesPerHour) / MEBIBYTE;
  const text = mebibytes >= 999.5 ? formatExactCount(mebibytes) : threeDigits(mebibytes);
  const sign = bytesPerHour > 0 ? "+" : "-";
  return `${Number(text) === 0 ? "" : sign}${text} MiB/h`;
}

/** The same after a verb that has the sign: it grows by "12.0 MiB/h". */
export function formatRate(bytesPerHour: number): string {
  return formatGrowth(Math.abs(bytesPerHour)).replace("+", "");
}

/**
 * "+578 MiB/h (+567 to +589)"; "+578 MiB/h" if both ends of the 95 % interval print as the growth does; "not measurable
 * (-3.0 to +5.0 MiB/h)" if it includes zero; "none" if nothing in it prints as growth; "window too short" without one.
 * Bytes per hour.
 */
export function formatGrowthInterval(bytesPerHour: number, low?: number, high?: number): string {
  if (low === undefined || high === undefined) {
    return "window too short";
  }
  const own = formatGrowth(bytesPerHour);
  const [from, to] = [formatGrowth(low), formatGrowth(high)];
  const range = `${from.replace(" MiB/h", "")} to ${to}`;
  if (low <= 0 && high >= 0) {
    return to === formatGrowth(0) ? "none" : `not measurable (${range})`;
  }
  return from === to && from === own ? own : `${own} (${range.replace(" MiB/h", "")})`;
}

/** Why growth is not certain although its interval is above zero (`growthDoubt` of a summary). */
export const GROWTH_DOUBTS = {
  small: "not certain in so short a window",
  past: "but not certainly in the last third",
} as const;

// --- counts and shares ---------------------------------------------------------------------------

/** "1,204"; from `shortenedFrom` on three digits and a letter: "120 k", "3.40 M". */
export function formatCount(count: number, shortenedFrom = 100_000): string {
  if (!Number.isFinite(count)) {
    return NOT_A_NUMBER;
  }
  const magnitude = Math.abs(count);
  if (magnitude < shortenedFrom - 0.5) {
    return formatExactCount(count);
  }
  const steps: [number, string][] = [
    [1e3, "k"],
    [1e6, "M"],
    [1e9, "G"],
    [1e12, "T"],
  ];
  const [step, letter] = steps.findLast(([least]) => magnitude >= least * 0.9995) ?? [1e3, "k"];
  return `${count < 0 ? "-" : ""}${threeDigits(magnitude / step)} ${letter}`;
}

/** "0.25 requests/s", "12.4 requests/s", "120 k requests/s". */
export function formatRequestRate(perSecond: number): string {
  const rate = Math.abs(perSecond) < 99.95 ? threeDigits(perSecond) : formatCount(perSecond);
  return `${rate} requests/s`;
}

/** All digits: "1,204,567". Without Intl, whose first use takes longer than reading a small recording. */
export function formatExactCount(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** All digits with a sign: "+1,204", "-12", "0". */
export function formatSignedCount(count: number): string {
  return signed(count, formatExactCount(count));
}

/** A share from 0 to 1 in whole percent: "38 %", "<1 %", "0 %". */
export function formatShare(share: number): string {
  if (!Number.isFinite(share) || share <= 0) {
    return "0 %";
  }
  return share < 0.005 ? "<1 %" : `${Math.round(share * 100)} %`;
}

/** A share with a decimal below 10 %, for wholes with many small parts: "3.1 %", "<0.1 %". */
export function formatFineShare(share: number): string {
  if (!Number.isFinite(share)) {
    return NOT_A_NUMBER;
  }
  const percent = share * 100;
  if (percent === 0) {
    return "0 %";
  }
  if (Math.abs(percent) < 0.1) {
    return "<0.1 %";
  }
  return `${percent.toFixed(Math.abs(percent) < 10 ? 1 : 0)} %`;
}

// --- durations and times -------------------------------------------------------------------------

/** "<1 ms", "850 ms", "12.4 s", "3 min 05 s", "1 h 02 min", "2 d 03 h". */
export function formatDuration(ms: Millis): string {
  if (!Number.isFinite(ms)) {
    return NOT_A_NUMBER;
  }
  if (ms > 0 && ms < 0.5) {
    return "<1 ms";
  }
  if (ms < 999.5) {
    return `${Math.round(ms)} ms`;
  }
  if (ms < 59_950) {
    return `${(ms / SECOND).toFixed(1)} s`;
  }
  const seconds = Math.round(ms / SECOND);
  if (seconds < 3600) {
    return `${Math.floor(seconds / 60)} min ${twoDigits(seconds % 60)} s`;
  }
  const minutes = Math.round(seconds / 60);
  if (minutes < 24 * 60) {
    return `${Math.floor(minutes / 60)} h ${twoDigits(minutes % 60)} min`;
  }
  const hours = Math.round(minutes / 60);
  return `${Math.floor(hours / 24)} d ${twoDigits(hours % 24)} h`;
}

/** One unit and two significant digits, enough for a sentence: "2.5 min", "12 h", "3.0 days". */
export function formatDurationBriefly(ms: Millis): string {
  const steps: [Millis, string][] = [
    [DAY, "days"],
    [HOUR, "h"],
    [MINUTE, "min"],
    [SECOND, "s"],
  ];
  const [step, unit] = steps.find(([least]) => ms >= 2 * least) ?? [SECOND, "s"];
  return `${ms / step >= 10 ? Math.round(ms / step) : (ms / step).toFixed(1)} ${unit}`;
}

/** A pause or a moment in milliseconds: "3.4 ms". */
export function formatMilliseconds(ms: Millis, decimals = 1): string {
  return `${ms.toFixed(decimals)} ms`;
}

/** Time since the start: "+8.3 s" in the first minute, then "+1:05", "+2:03:04". */
export function formatElapsed(timeMs: TimeMs, startMs: TimeMs): string {
  const sign = timeMs < startMs ? "-" : "+";
  const elapsed = Math.abs(timeMs - startMs);
  if (elapsed < 59_950) {
    return `${sign}${(elapsed / SECOND).toFixed(1)} s`;
  }
  const seconds = Math.round(elapsed / SECOND);
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  const clock = hours > 0 ? `${hours}:${twoDigits(minutes)}` : String(minutes);
  return `${sign}${clock}:${twoDigits(seconds % 60)}`;
}

/** Date and time of day: "2026-03-01 12:34:56 UTC". */
export function formatUtcTime(timeMs: TimeMs): string {
  return `${new Date(timeMs).toISOString().replace("T", " ").slice(0, 19)} UTC`;
}

/** Local time of day: "19:33:05"; with `withDay`: "03-01 19:33". */
export function formatWallClock(timeMs: TimeMs, withDay = false): string {
  const at = new Date(timeMs);
  const [month, day, hours, minutes, seconds] = [
    at.getMonth() + 1,
    at.getDate(),
    at.getHours(),
    at.getMinutes(),
    at.getSeconds(),
  ].map(twoDigits);
  return withDay ? `${month}-${day} ${hours}:${minutes}` : `${hours}:${minutes}:${seconds}`;
}

/** "11-28 17:19:20", of a moment that is seconds away from another one. */
export function formatMoment(timeMs: TimeMs): string {
  return `${formatWallClock(timeMs, true)}:${twoDigits(new Date(timeMs).getSeconds())}`;
}

// --- digits --------------------------------------------------------------------------------------

/** The next unit is used if the smaller one would need four digits; whole bytes are shown up to 1023. */
function bytesWith(bytes: Bytes, digits: (value: number) => string): string {
  if (!Number.isFinite(bytes)) {
    return NOT_A_NUMBER;
  }
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= (unit === 0 ? 1024 : 999.5) && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const text = unit === 0 ? value.toFixed(0) : digits(value);
  return `${bytes < 0 && text !== "0" ? "-" : ""}${text} ${BYTE_UNITS[unit]}`;
}

function signed(value: number, text: string): string {
  return value > 0 && !/^0(?: |$)/.test(text) ? `+${text}` : text;
}

function threeDigits(value: number): string {
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
