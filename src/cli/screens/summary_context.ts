import { constants } from "node:os";
import { relative } from "node:path";
import type { Recording } from "../../inspect/index.js";
import { formatDuration } from "../../model/base/numbers.js";
import { shellWord } from "../../model/base/shell_word.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import type { SummaryJson } from "../../model/documents/summary_document.js";
import { seenAt, sizeOfFile } from "../files/recordings.js";
import type { SummaryContext } from "./summary.js";

/** What the summary screen needs from a recording in addition to the document. */
export function summaryContext(
  recording: Recording,
  summary: SummaryJson,
  moment: string,
  recorderCpuMs: Millis | null,
): SummaryContext {
  const root = recording.series[0];
  return {
    summary,
    moment: seenAt(moment, { atMs: summary.atMs, startMs: summary.window.startMs }),
    rss: {
      timesMs: root?.timesMs ?? [],
      bytes: root?.values.get("treeRssBytes") ?? root?.values.get("rssBytes") ?? [],
    },
    ending: endingOf(recording),
    recorderCpuMs,
    recordingPath: recording.path,
    recordingBytes: sizeOfFile(recording.path),
  };
}

/**
 * A program that exits sooner and holds less has not begun its work. Figures about its start would push its own
 * message off the screen.
 */
const FAILED_AT_ONCE_MS: Millis = 1_000;
const MOST_OF_A_START: Bytes = 32 * 2 ** 20;

/** It ended by itself with an error, so early that its memory does not matter. */
export function failedAtOnce(recording: Recording): boolean {
  const { end, startMs, endMs, snapshots, memoryEnds } = recording;
  const isSmall = snapshots.every(({ liveBytes }) => liveBytes < MOST_OF_A_START);
  const failed = end !== null && end.exitCode !== null && end.exitCode !== 0;
  return failed && isSmall && memoryEnds.length === 0 && endMs - startMs < FAILED_AT_ONCE_MS;
}

/** "the program ended with exit code 1 after 60 ms; its recording: tidemark summary app.tidemark". */
export function failureLine(recording: Recording): string {
  const lasted = formatDuration(recording.endMs - recording.startMs);
  return `the program ended with ${endingOf(recording)} after ${lasted}; its recording: tidemark summary ${shellWord(shownPath(recording.path))}`;
}

function shownPath(path: string): string {
  const here = relative(process.cwd(), path);
  return here.startsWith("..") ? path : here;
}

function endingOf(recording: Recording): string {
  const { end, meta } = recording;
  if (end === null) {
    return meta.imported !== undefined
      ? "incomplete"
      : "still recording, or the recorder did not see the end";
  }
  if (end.signal !== null) {
    return `ended by ${signalName(end.signal)}`;
  }
  return end.exitCode === null ? "" : `exit code ${end.exitCode}`;
}

function signalName(signal: number): string {
  const known = Object.entries(constants.signals).find(([, number]) => number === signal);
  return known?.[0] ?? `signal ${signal}`;
}
