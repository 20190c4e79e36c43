import { constants } from "node:os";
import type { Recording } from "../../inspect/index.js";
import type { Millis } from "../../model/base/units.js";
import type { SummaryJson } from "../../model/documents/documents.js";
import { seenAt, sizeOfFile } from "../files/recordings.js";
import type { SummaryContext } from "./summary.js";

/** What the summary's screen needs of a recording besides the document. */
export function summaryContext(
  recording: Recording,
  summary: SummaryJson,
  moment: string,
  recorderCpuMs: Millis | null,
): SummaryContext {
  const root = recording.series[0];
  return {
    summary,
    moment: seenAt(moment, summary),
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

function endingOf(recording: Recording): string {
  const { end } = recording;
  if (end === null) {
    return "still recording, or the end was not seen";
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
