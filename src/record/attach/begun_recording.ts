/** The recording of a program that already runs: its file, the server that it is sent to, and its first frame. */
import { hostname, release } from "node:os";
import { resolve } from "node:path";
import { readCommand, readEnvironment, readStat } from "../../linux/index.js";
import { TIDEMARK_VERSION } from "../../linux/installation.js";
import { nowMs } from "../../linux/this_process/clock.js";
import type { Bytes, Pid, TimeMs } from "../../model/base/units.js";
import { programName } from "../../model/profile/program_name.js";
import { identityOf } from "../../model/wire/identity.js";
import { FileSink } from "../../recording/frames/file_sink.js";
import type { Destination } from "../../recording/sender/post_connection.js";
import { SentSink } from "../../recording/sender/sent_sink.js";
import { StreamSender } from "../../recording/sender/stream_sender.js";
import { RecordingWriter } from "../../recording/writer.js";

export interface BegunRecording {
  readonly path: string;
  readonly writer: RecordingWriter;
  readonly command: readonly string[];
  /** When the recording began; earlier events are not in it. */
  readonly startedMs: TimeMs;
  /** After the file was closed: sends what the server lacks. @returns a sentence about what could not be sent */
  sendRest(): Promise<string | undefined>;
}

/** Of the agent's pool; null without an agent. */
interface PoolAbout {
  readonly runId: string;
  readonly periodBytes: Bytes;
  readonly keeper: { readonly pid: Pid; readonly fd: number };
}

/** Throws TidemarkError if the file cannot be opened. */
export function beginRecording(
  pid: Pid,
  recordingPath: string,
  pool: PoolAbout | null,
  to: Destination | undefined,
): BegunRecording {
  const path = resolve(recordingPath);
  const sender = to ? new StreamSender(to) : null;
  const file = FileSink.open(path);
  const writer = new RecordingWriter(sender ? new SentSink(file, sender) : file);
  const command = readCommand(pid) ?? [];
  const startedMs = nowMs();
  const withTicks = <Place extends { readonly pid: Pid }>(place: Place) => ({
    ...place,
    startTicks: readStat(place.pid)?.startTicks ?? 0,
  });
  writer.begin({
    tidemarkVersion: TIDEMARK_VERSION,
    command,
    pid,
    startedMs,
    host: hostname(),
    kernel: release(),
    runId: pool?.runId ?? "",
    periodBytes: pool?.periodBytes ?? 0,
    keeper: pool === null ? null : withTicks(pool.keeper),
    recorder: withTicks({ pid: process.pid }),
    identity: identityOf(readEnvironment(pid), programName(command)),
  });
  return {
    path,
    writer,
    command,
    startedMs,
    sendRest: async () => (await sender?.finish(path)) || undefined,
  };
}
