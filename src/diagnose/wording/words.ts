/** Figures inside the sentences of a verdict. */
import type { FrameJson } from "../../model/documents.js";
import type { Bytes, Millis } from "../../model/units.js";

const MS_PER_HOUR = 3_600_000;

/** "12 MiB", "1.4 GiB": two significant digits, enough for a sentence. */
export function bytesText(bytes: Bytes): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${bytes < 0 ? "-" : ""}${value >= 10 || unit === 0 ? value.toFixed(0) : value.toFixed(1)} ${units[unit]}`;
}

/** A slope by ms as "12 MiB/h". */
export function rateText(slope: number): string {
  return `${bytesText(slope * MS_PER_HOUR)}/h`;
}

export function timeText(ms: Millis): string {
  const steps: [Millis, string][] = [
    [86_400_000, "days"],
    [3_600_000, "h"],
    [60_000, "min"],
    [1000, "s"],
  ];
  const [step, unit] = steps.find(([least]) => ms >= 2 * least) ?? [1000, "s"];
  return `${ms / step >= 10 ? Math.round(ms / step) : (ms / step).toFixed(1)} ${unit}`;
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** "record (app.py:41)" */
export function frameText(frame: FrameJson | undefined): string {
  if (!frame) {
    return "an unknown place";
  }
  const file = frame.file.slice(frame.file.lastIndexOf("/") + 1);
  const name = frame.function || "(no symbol)";
  return file === "" ? name : `${name} (${file}${frame.line > 0 ? `:${frame.line}` : ""})`;
}
