import { readFileSync } from "node:fs";
import { hostname, release, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { readStat } from "../../linux/index.js";
import { TIDEMARK_VERSION } from "../../linux/installation.js";
import { nowMs } from "../../linux/this_process/clock.js";
import { MemoryRoom } from "../../linux/this_process/memory_room.js";
import { raiseOomScore } from "../../linux/this_process/out_of_memory.js";
import type { Bytes, Pid, TimeMs } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { programName } from "../../model/profile/program_name.js";
import { identityOf } from "../../model/wire/identity.js";
import { FileSink } from "../../recording/frames/file_sink.js";
import type { FrameSink } from "../../recording/frames/frame_sink.js";
import { SentSink } from "../../recording/sender/sent_sink.js";
import { StreamSender } from "../../recording/sender/stream_sender.js";
import type { RecordingMeta } from "../../recording/types.js";
import { RecordingWriter } from "../../recording/writer.js";
import { CpuBudget } from "../budget/cpu_budget.js";
import { DeviceWatch } from "../devices/device_watch.js";
import type { ExitReport } from "../process/exit_report.js";
import { openRecording, reopenRecording } from "../process/open_recording.js";
import { PoolWatch } from "../process/pool_watch.js";
import { GuardClient } from "./guard.js";
import { handedOverSentence } from "./hand_over.js";
import { type Preload, preparePreload } from "./preload.js";
import { Recorder } from "./recorder.js";
import type { RunOptions, RunResult } from "./run_options.js";

/** The errno of exec for which a shell returns 127; everything else is 126. */
const ENOENT = 2;
/**
 * Signals that must not end or stop the recorder while the program runs, because they are meant for the
 * program. Not SIGXFSZ, which Node itself ignores: removing a listener for it would make it fatal.
 */
const PROGRAM_SIGNALS = [
  "SIGINT",
  "SIGTERM",
  "SIGHUP",
  "SIGQUIT",
  "SIGUSR1",
  "SIGUSR2",
  "SIGTSTP",
] as const;
const WATCH_GUARD_MS = 2_000;

/**
 * Everything of `tidemark run` except printing: decides whether an agent can be preloaded, starts the program
 * through the guard, records it until it ends, and reports how it ended. While the program runs, nothing is
 * written to the standard descriptors. A full disk, an unwritable path or an agent that cannot be loaded never
 * prevents the program from running; `notes` report them. Throws TidemarkError if there is no guard.
 */
export async function runUnderAgent(options: RunOptions): Promise<RunResult> {
  raiseOomScore();
  const guard = new GuardClient(options.guardDescriptor);
  const ignore = () => {};
  for (const signal of PROGRAM_SIGNALS) {
    process.on(signal, ignore);
  }
  const notes: string[] = [];
  for (const [name, value] of Object.entries(options.environment ?? {})) {
    guard.setEnvironment(name, value);
  }
  const preload = await preparePreload(guard, options, notes);
  try {
    return await startAndRecord(guard, options, preload, notes);
  } finally {
    preload?.close();
    for (const signal of PROGRAM_SIGNALS) {
      process.off(signal, ignore);
    }
  }
}

async function startAndRecord(
  guard: GuardClient,
  options: RunOptions,
  preload: Preload | null,
  notes: string[],
): Promise<RunResult> {
  const wanted = resolve(options.recordingPath);
  const sender = options.to ? new StreamSender(options.to) : null;
  const writer = openWriter(wanted, notes, sender);
  if (preload && writer.failure === null) {
    guard.setOrphan(orphanPath(writer.path));
  }
  const started = await guard.start(argumentBytes(options.command));
  const whatever = {
    recordingPath: wanted,
    handedOver: false,
    signal: null,
    startFailure: null,
    notes,
    recorderCpuMs: 0,
    open: () => openRecording(wanted),
    leave: (exitCode: number) => guard.leave(exitCode),
  };
  if (!started.started) {
    writer.discard();
    const exitCode = started.errno === ENOENT ? 127 : 126;
    return { ...whatever, recorded: false, exitCode, startFailure: started.reason };
  }
  const startedMs = nowMs();
  const failureBefore = writer.failure;
  writer.begin(describe(options, preload, started.pid, startedMs));
  writer.limits(startedMs, notes);
  const recorder = new Recorder({
    writer,
    pid: started.pid,
    startTicks: started.startTicks,
    command: options.command,
    startedMs,
    follow: options.follow ?? true,
    pool: preload && new PoolWatch(preload.pool, preload.descriptor, started.pid),
    devices: options.devices ? new DeviceWatch(options.devices, dirname(wanted)) : null,
    budget: options.budget ?? new CpuBudget(),
    memory: new MemoryRoom(),
  });
  recorder.start();
  // Without an agent or a file, the guard has nothing to keep.
  const mayLeave = preload !== null && writer.failure === null;
  const end = await endOrShortage(guard, recorder, started.pid, mayLeave);
  if ("roomBytes" in end) {
    recorder.handOver(handedOverSentence(end.roomBytes));
    writer.close();
    sender?.stop();
    guard.handOver();
    return { ...whatever, recorded: true, handedOver: true, exitCode: 0 };
  }
  await recorder.finish(end.report);
  writer.close();
  guard.setOrphan("");
  const { failure } = writer;
  if (failure && failure !== failureBefore) {
    notes.push(`The recording is incomplete: ${failure.what}.`);
  }
  const unsent = await sender?.finish(writer.path);
  if (unsent) {
    notes.push(unsent);
  }
  return {
    ...whatever,
    recordingPath: writer.path,
    recorded: writer.failure === null,
    exitCode: exitCodeOf(end.report),
    signal: end.report?.signal ?? null,
    recorderCpuMs: recorder.cpuMs,
    open: () => reopenRecording(writer.path, writer.memory),
  };
}

/** Waits for the program's end or, if the recorder may leave, for a shortage of memory. */
async function endOrShortage(
  guard: GuardClient,
  recorder: Recorder,
  program: Pid,
  mayLeave: boolean,
): Promise<{ readonly report: ExitReport | null } | { readonly roomBytes: Bytes }> {
  const watch = setInterval(() => wakeGuard(program), WATCH_GUARD_MS);
  try {
    const ended = guard.exited.then(async (report) => ({
      report: report ?? (await endWithoutGuard(recorder)),
    }));
    return await (mayLeave ? Promise.race([ended, recorder.outOfMemory]) : ended);
  } finally {
    clearInterval(watch);
  }
}

/** Path at which the guard stores the pool of a recording whose recorder died. */
export function orphanPath(recordingPath: string): string {
  return `${recordingPath}.orphan`;
}

/** The requested file, otherwise one in the temporary folder, otherwise none; the summary is printed in any case. */
function openWriter(path: string, notes: string[], sender: StreamSender | null): RecordingWriter {
  const sent = (sink: FrameSink) => new RecordingWriter(sender ? new SentSink(sink, sender) : sink);
  let failure: TidemarkError | null = null;
  const instead = join(tmpdir(), `tidemark-${process.pid}-${basename(path)}`);
  for (const candidate of [path, instead]) {
    try {
      const writer = sent(FileSink.open(candidate));
      if (candidate === instead) {
        notes.push(`The recording is written to ${instead} instead.`);
      }
      return writer;
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      notes.push(`No recording could be written: ${error.what}.`);
      failure = error;
    }
  }
  return sent(FileSink.inMemory(path, failure as TidemarkError));
}

/**
 * argv in the original bytes, because Node has decoded them and not every argument is UTF-8. The last words are
 * those that the user typed; `-m pytest` gets a Python in front of it.
 */
function argumentBytes(command: readonly string[]): Buffer[] {
  const typed = readFileSync("/proc/self/cmdline", "latin1").split("\0").slice(0, -1);
  const bytes = command.map((argument) => Buffer.from(argument));
  for (let fromEnd = 1; fromEnd <= Math.min(command.length, typed.length); fromEnd++) {
    const raw = Buffer.from(typed.at(-fromEnd) as string, "latin1");
    if (raw.toString() !== command.at(-fromEnd)) {
      break;
    }
    bytes[command.length - fromEnd] = raw;
  }
  return bytes;
}

function describe(
  options: RunOptions,
  preload: Preload | null,
  pid: number,
  startedMs: TimeMs,
): Omit<RecordingMeta, "formatVersion"> {
  const ticks = (of: number) => readStat(of)?.startTicks ?? 0;
  return {
    tidemarkVersion: TIDEMARK_VERSION,
    command: options.command,
    pid,
    startedMs,
    host: hostname(),
    kernel: release(),
    runId: preload?.pool.header().runId ?? "",
    periodBytes: preload?.pool.header().periodBytes ?? 0,
    keeper: preload && {
      pid: preload.guardPid,
      startTicks: ticks(preload.guardPid),
      fd: preload.guardDescriptor,
    },
    recorder: { pid: process.pid, startTicks: ticks(process.pid) },
    identity: identityOf(process.env, programName(options.command, resolve)),
  };
}

/**
 * The guard stops when the program is stopped, so that the shell sees it. A debugger or supervisor that then
 * continues only the program does not know about the guard.
 */
function wakeGuard(program: number): void {
  if (readStat(process.ppid)?.state === "T" && !"Tt".includes(readStat(program)?.state ?? "T")) {
    process.kill(process.ppid, "SIGCONT");
  }
}

/** The guard was killed: the program continues, and its end is visible only in /proc. */
async function endWithoutGuard(recorder: Recorder): Promise<null> {
  while (recorder.rootLives) {
    await new Promise((wake) => setTimeout(wake, 500));
  }
  return null;
}

export function exitCodeOf(report: ExitReport | null): number {
  return report === null ? 1 : (report.exitCode ?? 128 + (report.signal ?? 0));
}
