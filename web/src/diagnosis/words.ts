/** Figures of a verdict, prepared for its tab. */

import type { Bytes, Millis } from "../../../src/model/base/units.js";
import {
  CALM_KINDS,
  type DiagnosisJson,
  type HolderJson,
  type SuspectJson,
  type VerdictKind,
} from "../../../src/model/documents/diagnosis_document.js";
import type { FrameJson } from "../../../src/model/documents/documents.js";
import { baseName } from "../../../src/model/profile/frame_text.js";
import { formatBytes, formatCount } from "../format/numbers.js";

type Mood = "calm" | "open" | "alarm";

/** How to read a verdict: nothing to do, not known yet, or something to fix. */
export function moodOf(kind: VerdictKind): Mood {
  if (kind === "insufficient-evidence") {
    return "open";
  }
  return CALM_KINDS.has(kind) ? "calm" : "alarm";
}

interface Cohort {
  /** Age of its youngest and its oldest; Infinity: as old as the recording. */
  readonly fromMs: Millis;
  readonly toMs: Millis;
  readonly bytes: Bytes;
}

/** Live bytes by age, oldest first. Each entry of `ages` includes older ones; a cohort does not. */
export function cohortsOf(ages: SuspectJson["ages"]): Cohort[] {
  return ages
    .map(({ olderThanMs, bytes }, index) => ({
      fromMs: olderThanMs,
      toMs: ages[index + 1]?.olderThanMs ?? Number.POSITIVE_INFINITY,
      bytes: Math.max(0, bytes - (ages[index + 1]?.bytes ?? 0)),
    }))
    .reverse();
}

/** "a dict of 1,873 entries that keeps 6.08 MiB alive" */
export function holderWords({ type, entries, retainedBytes }: HolderJson): string {
  const name = type || "object";
  const article = /^[aeiou]/i.test(name) ? "an" : "a";
  const holds =
    entries > 0 ? ` of ${formatCount(entries)} ${entries === 1 ? "entry" : "entries"}` : "";
  const keeps = retainedBytes > 0 ? ` that keeps ${formatBytes(retainedBytes)} alive` : "";
  return `${article} ${name}${holds}${keeps}`;
}

/** "app.py:41"; for native code the object file; "" if no file is known. */
export function placeOf({ file, line }: FrameJson): string {
  return line > 0 && file !== "" ? `${baseName(file)}:${line}` : baseName(file);
}

/** Parts that hold bytes or change, fastest growing first. */
export function partsShown(ledger: DiagnosisJson["ledger"]): DiagnosisJson["ledger"] {
  return ledger
    .filter(({ bytes, growthBytesPerHour }) => bytes > 0 || growthBytesPerHour !== 0)
    .sort((a, b) => b.growthBytesPerHour - a.growthBytesPerHour || b.bytes - a.bytes);
}
