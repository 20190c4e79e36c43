/** Recordings as named on command lines: a path, often with a moment. */

import { existsSync } from "node:fs";
import type { Moment, Recording } from "../../inspect/index.js";
import { didYouMean } from "../../model/base/near_miss.js";
import { formatDuration } from "../../model/base/numbers.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import { badUsage, nothingThere } from "../../model/errors/errors.js";
import { isUnknown } from "../../model/profile/imported.js";
import { printNote } from "../text/output.js";
import { statOf } from "./files.js";

/**
 * Reports on one line of stderr what is missing from a damaged recording or one whose recorder was killed, for
 * commands whose output has no place for it. Also with --quiet, because the figures look like those of a
 * complete recording.
 */
export function sayMissing({ missing }: Recording): void {
  if (missing !== null) {
    printNote(missing);
  }
}

/** For `export`, which uses the store. */
export { openRecordingAt } from "../../inspect/index.js";

/** A moment of a recording and its text. */
interface NamedMoment {
  readonly moment: Moment;
  /** "end", "peak", "12.0 s". */
  readonly name: string;
}

export const MOMENT_HELP =
  "peak, end, a time since the start (90s, 5min, 01:30), a time of day (19:33:00) or a date";

/**
 * "end", "peak", "90s" or "1:30" after the start, "-30s" before the end, "19:33:00" of the day, ms since 1970, or an
 * ISO date. Throws TidemarkError for anything else and for a time outside the recording.
 */
export function parseMoment(text: string, recording: Recording): NamedMoment {
  const { imported } = recording.meta;
  if (text === "peak" && isUnknown(imported, "peak")) {
    throw nothingThere(
      `${recording.path}, imported from ${imported?.tool}, contains no peak`,
      "leave peak out: it shows what the file contains",
    );
  }
  if (text === "end" || text === "peak") {
    return { moment: text, name: text };
  }
  const timeMs = parseTime(text, recording);
  if (timeMs === null) {
    const guess = didYouMean(text, ["peak", "end"]);
    throw badUsage(
      `'${text}' is not a moment of a recording`,
      `${guess === "" ? "" : `${guess} `}use ${MOMENT_HELP}`,
    );
  }
  // One second of tolerance, because people round.
  if (timeMs < recording.startMs - 1000 || timeMs > recording.endMs + 1000) {
    const length = formatDuration(recording.endMs - recording.startMs);
    throw nothingThere(
      `${text} is outside ${recording.path}`,
      `it covers ${length} from ${localTime(recording.startMs)} to ${localTime(recording.endMs)}`,
    );
  }
  const clamped = Math.max(recording.startMs, Math.min(recording.endMs, timeMs));
  return { moment: clamped, name: text };
}

/** The moment's text, and the time in the run of the snapshot that represents it. */
export function seenAt(
  name: string,
  { atMs, startMs }: { readonly atMs: TimeMs; readonly startMs: TimeMs },
): string {
  const seen = formatDuration(Math.max(0, atMs - startMs));
  return name === "end" || name === "peak" ? name : `${name} (seen at ${seen})`;
}

const DAY_MS: Millis = 86_400_000;
const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, min: 60_000, m: 60_000, h: 3_600_000 };

function parseTime(text: string, recording: Recording): TimeMs | null {
  const offset = /^([+-]?)(\d+(?:\.\d+)?) ?(ms|s|min|m|h)$/.exec(text);
  if (offset) {
    const ms = Number(offset[2]) * (UNIT_MS[offset[3] as string] as number);
    return offset[1] === "-" ? recording.endMs - ms : recording.startMs + ms;
  }
  const clock = /^([+-]?)(?:(\d+):(?=[0-5]?\d:))?(\d{1,2}):([0-5]\d(?:\.\d+)?)$/.exec(text);
  if (clock) {
    return parseClock(text, clock, recording);
  }
  if (/^\d{12,14}$/.test(text)) {
    return Number(text);
  }
  const date = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? null : date;
}

/**
 * "19:33:00" is a time of day if the recording includes it, otherwise a time since the start. For "01:30" the
 * order is reversed: minutes and seconds since the start come first. With a sign it is never a time of day.
 */
function parseClock(
  text: string,
  [, sign, hours, minutes, seconds]: RegExpExecArray,
  recording: Recording,
): TimeMs {
  const ms = (Number(hours ?? 0) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
  const offset = sign === "-" ? recording.endMs - ms : recording.startMs + ms;
  if (sign !== "" || (hours === undefined && offset <= recording.endMs + 1000)) {
    return offset;
  }
  const ofDay = hours === undefined ? ms * 60 : ms; // "19:33": hours and minutes
  const [moment, another] = momentsOfDay(ofDay, recording);
  if (another !== undefined) {
    const date = localTime(another).slice(0, 10);
    throw badUsage(
      `${text} occurs more than once in ${recording.path}`,
      `include the date: ${date}T${text}`,
    );
  }
  return moment ?? offset;
}

/** The times at which the local clock shows that many ms since midnight. */
function momentsOfDay(ms: Millis, { startMs, endMs }: Recording): TimeMs[] {
  const moments: TimeMs[] = [];
  const day = new Date(startMs);
  day.setHours(0, 0, 0, 0);
  for (; ms < DAY_MS && day.getTime() <= endMs; day.setDate(day.getDate() + 1)) {
    const at = new Date(day);
    at.setHours(0, 0, 0, ms); // by the calendar: a day with a clock change has 23 or 25 hours
    if (at.getTime() >= startMs - 1000 && at.getTime() <= endMs + 1000) {
      moments.push(at.getTime());
    }
  }
  return moments;
}

/** "2026-11-21 19:33:00" */
function localTime(timeMs: TimeMs): string {
  return new Date(timeMs).toLocaleString("sv-SE");
}

/** "REC" or "REC@MOMENT"; a file whose name contains an @ takes precedence. */
export function splitMoment(argument: string): {
  readonly path: string;
  readonly at: string | null;
} {
  const at = argument.lastIndexOf("@");
  if (at <= 0 || existsSync(argument)) {
    return { path: argument, at: null };
  }
  return { path: argument.slice(0, at), at: argument.slice(at + 1) };
}

export function sizeOfFile(path: string): number {
  return statOf(path)?.size ?? 0;
}
