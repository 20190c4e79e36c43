/** The recording of a program that already runs: its file, the server that it is sent to, and its first frame. */
import { release } from "node:os";
import { resolve } from "node:path";
import { readCommand, readEnvironment, readStat, usualName } from "../../linux/index.js";
import { TIDEMARK_VERSION } from "../../linux/installation.js";
import { nowMs } from "../../linux/this_process/clock.js";
import { hostName } from "../../linux/this_process/host_name.js";
import type { Bytes, Pid, TimeMs } from "../../model/base/units.js";
import { identityOf, type ServiceIdentity } from "../../model/wire/identity.js";
import { FileSink } from "../../recording/frames/file_sink.js";
import type { Destination } from "../../recording/sender/post_connection.js";
import { SentSink } from "../../recording/sender/sent_sink.js";
import { StreamSender } from "../../recording/sender/stream_sender.js";
import { RecordingWriter } from "../../recording/writer.js";
import type { ProgramExit } from "../process/exit_report.js";

export interface BegunRecording {
  readonly path: string;
  readonly writer: RecordingWriter;
  readonly command: readonly string[];
  /** When the recording began; earlier events are not in it. */
  readonly startedMs: TimeMs;
  /** After the file was closed: sends what the server lacks. @returns a sentence about what could not be sent */
  sendRest(): Promise<string | undefined>;
}

/** Of the agent's pool. */
interface PoolAbout {
  readonly runId: string;
  readonly periodBytes: Bytes;
  /** null: the pool is a file. */
  readonly keeper: { readonly pid: Pid; readonly fd: number } | null;
}

export interface RecordingStart {
  readonly pid: Pid;
  readonly recordingPath: string;
  /** A server that the recording is sent to while it grows; left out: none. */
  readonly to?: Destination;
  /** Called when all was sent that could be. null: the server has it all; otherwise how much it has at most. */
  readonly onSent?: (mayHaveBytes: Bytes | null) => void;
  /** Asked once the program has ended: how it ended; null: unknown. Left out: always unknown. */
  readonly outcomeOf?: () => Promise<ProgramExit | null>;
  /** The program's; left out: what its environment and its files in /proc name. */
  readonly identity?: ServiceIdentity;
}

/** `pool`: null without an agent. Throws TidemarkError if the file cannot be opened. */
export function beginRecording(
  { pid, recordingPath, to, identity, onSent }: RecordingStart,
  pool: PoolAbout | null,
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
    host: hostName(),
    kernel: release(),
    runId: pool?.runId ?? "",
    periodBytes: pool?.periodBytes ?? 0,
    keeper: pool?.keeper ? withTicks(pool.keeper) : null,
    recorder: withTicks({ pid: process.pid }),
    identity: identity ?? identityOf(readEnvironment(pid), usualName(pid, command)),
  });
  return {
    path,
    writer,
    command,
    startedMs,
    async sendRest() {
      const left = sender === null ? null : await sender.finish(path);
      onSent?.(left === null ? null : (sender?.mayHaveBytes(0) ?? 0));
      return left ?? undefined;
    },
  };
}
