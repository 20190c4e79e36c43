/**
 * Records a live process for some time and leaves it as it was.
 *
 *   keeper makes the pool ── the process arms its agent (remote exec) ── Recorder, as for `run`
 *     ... the time is over, the process ends, or the user ends the recording ...
 *   last snapshot ── the process disarms its agent ── keeper leaves
 *
 * | what | outcome |
 * |---|---|
 * | no such process, or it has ended | TM-E020; while it is recorded: the recording ends with it |
 * | not permitted, traced, unknown interpreter | TM-E021, TM-E032, TM-E034: nothing was touched |
 * | already recorded (run, attach) | TM-E037 names the recorder |
 * | an older version's agent, without a recorder | it is disarmed, and ours is loaded beside it |
 * | armed by its environment, without a recorder | its own pool is used, and stays armed at the end |
 * | another user's, another pid namespace | the agent creates the pool, which is opened through /proc/PID/fd |
 * | the recorder is killed | the lease lapses, the agent disarms itself; the keeper leaves the orphan file |
 * | it cannot be disarmed in time | the lease ends in a second and the agent disarms itself; a note reports it |
 * | it forks | the child is recorded as with `run`, and disarms itself in the second after the end |
 * | it already has children | those that run the same program are also armed (attached_children.ts) |
 * | it starts other programs, or a child cannot be entered | watched only from outside; `limits` reports it |
 */

import { closeSync, fstatSync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { RemoteAnswer } from "../../cpython/entry/remote_exec.js";
import {
  hasEnded,
  isMapping,
  isMappingNamed,
  type RecentTexts,
  readArmPermission,
  readStat,
  refusalOf,
  startTimeMs,
} from "../../linux/index.js";
import { LIBRARY_PATH } from "../../linux/installation.js";
import { monotonicMs, nowMs } from "../../linux/this_process/clock.js";
import { MemoryRoom } from "../../linux/this_process/memory_room.js";
import { raiseOomScore } from "../../linux/this_process/out_of_memory.js";
import { shellWord } from "../../model/base/shell_word.js";
import type { Bytes, Millis, Pid } from "../../model/base/units.js";
import { agentRefused, alreadyAttached, recorderDied } from "../../model/errors/attach_errors.js";
import { processGone, TidemarkError } from "../../model/errors/errors.js";
import type { Recording } from "../../recording/types.js";
import { CONSTANTS } from "../../segment/layout.js";
import { PoolReader } from "../../segment/pool.js";
import { CpuBudget } from "../budget/cpu_budget.js";
import type { DeviceUse } from "../devices/device_use.js";
import type { DeviceWatchOptions } from "../devices/device_watch.js";
import { DeviceWatch } from "../devices/device_watch.js";
import { PoolKeeper } from "../launch/keeper.js";
import { Recorder } from "../launch/recorder.js";
import { orphanPath } from "../launch/run.js";
import type { ExitOf } from "../process/exit_report.js";
import { reopenRecording } from "../process/open_recording.js";
import { PoolWatch } from "../process/pool_watch.js";
import { growingRecordingOf } from "../process/recording_in_progress.js";
import { type AgentStatus, type ArmOptions, armAgent, disarmAgent } from "./attached_agent.js";
import {
  armChildren,
  type ChildrenChoice,
  childrenLeft,
  childrenToAttach,
} from "./attached_children.js";
import { beginRecording, type RecordingStart } from "./begun_recording.js";
import { leftAgentOf } from "./left_agent.js";

/** Interval of the checks for `enough`; without it, only the process's end and the length of the recording count. */
const CHECK_MS = 500;
const IDLE_MS = 3_600_000;
/** How long the process may take to disarm the agent. */
const LEAVE_MS = 10_000;
const FIRST_LEASE_MS = 30_000;
const LAST_LEASE_MS = 1_000;
/** O_PATH of include/uapi/asm-generic/fcntl.h: only finds the file. */
const OPEN_PATH = 0o10000000;
/** Kinds of memory that an agent records into: the recorder's, or its own in memory or in a folder. */
const POOL_NAMES = /^tidemark-(?:pool|\d+\.pool)\b/;

export interface AttachOptions extends RecordingStart {
  /** Full path of libtidemark.so, with tidemark-guard next to it; the default is this installation's. */
  readonly libraryPath?: string;
  readonly periodBytes?: Bytes;
  readonly native?: boolean;
  /** Also count the bytes that memcpy and memmove copy. */
  readonly copies?: boolean;
  readonly follow?: boolean;
  /** Existing children to record as well; the default is those that run the same program. */
  readonly children?: ChildrenChoice;
  /** Watch the devices of its processes; if absent, no process is entered for this. */
  readonly devices?: DeviceWatchOptions;
  /** Shared with the other recorders of this Node process; the default is a budget of its own. */
  readonly budget?: CpuBudget;
  /** Shared by recordings that are polled at the same moments. */
  readonly texts?: RecentTexts;
  readonly deviceUse?: DeviceUse;
  readonly exitOf?: ExitOf;
  /** Longest time between two readings of RSS. */
  readonly rssMs?: () => Millis;
  /** How long to wait for the process to run Python code. */
  readonly waitMs: Millis;
  /** Length of the recording; if absent, `enough` decides. */
  readonly forMs?: Millis;
  /** Called from time to time during the recording; true ends it. */
  readonly enough?: (elapsedMs: Millis, recordingPath: string) => boolean | Promise<boolean>;
  /** Ends it now, on an interrupt. */
  readonly until?: AbortSignal;
  readonly onWaiting?: (doing: string) => void;
  readonly onRecording?: (entered: RemoteAnswer, recordingPath: string) => void;
  /**
   * Called if the end waits for a holder lookup; the process has been left by then. Without it, the end does not wait,
   * nor makes a last lookup.
   */
  readonly onLookup?: () => void;
}

export interface AttachResult {
  readonly recordingPath: string;
  readonly notes: readonly string[];
  readonly recorderCpuMs: Millis;
  /** Whether the process ended while it was recorded. */
  readonly ended: boolean;
  /** The longest pause when attaching, of the process or an existing child, and the pause when detaching. */
  readonly attachPauseMs: Millis;
  readonly detachPauseMs: Millis;
  open(): Recording;
}

/** Throws TidemarkError if nothing was recorded. */
export async function attachAndRecord(options: AttachOptions): Promise<AttachResult> {
  const { pid, libraryPath = LIBRARY_PATH } = options;
  const stat = readStat(pid);
  if (stat === null || hasEnded(stat)) {
    throw processGone(pid);
  }
  const permission = readArmPermission(pid);
  if (!permission.ok) {
    throw refusalOf(pid, permission);
  }
  const other = otherRecorderOf(pid);
  if (other !== null) {
    throw other;
  }
  const period = Math.round(options.periodBytes ?? CONSTANTS.TM_DEFAULT_PERIOD);
  const keeper = await PoolKeeper.open(
    dirname(libraryPath),
    CONSTANTS.TM_DEFAULT_SLOT_COUNT,
    period,
    (options.native ? CONSTANTS.TM_OPTION_NATIVE : 0) |
      (options.copies ? CONSTANTS.TM_OPTION_COPIES : 0) |
      (options.follow === false ? CONSTANTS.TM_OPTION_NO_FOLLOW : 0),
  );
  raiseOomScore(); // after the keeper was started, which must outlive it
  try {
    keeper.pool.setLease(monotonicMs() + options.waitMs + FIRST_LEASE_MS);
    const armOptions: ArmOptions = {
      libraryPath,
      poolPath: keeper.path,
      periodBytes: period,
      native: options.native === true,
      copies: options.copies === true,
      follow: options.follow !== false,
    };
    const armed = await armAgent(pid, armOptions, {
      waitMs: options.waitMs,
      ...(options.onWaiting ? { onWaiting: options.onWaiting } : {}),
      ...(options.until ? { signal: options.until } : {}),
    });
    let place: PoolPlace | null = null;
    try {
      place = openPool(pid, armed.status, armed.stood, keeper);
      const owner = armed.status.pool === keeper.path ? armOptions : null;
      return await record(options, place, { ...armed, owner, startTicks: stat.startTicks });
    } catch (error) {
      if (!armed.stood) {
        await disarmAgent(pid, { waitMs: LEAVE_MS }).catch(() => {}); // the first error is more informative
      }
      throw error;
    } finally {
      place?.close();
    }
  } finally {
    keeper.close();
  }
}

/**
 * Why it cannot be recorded by another recorder now; null if nobody records it. Checked before anything is touched;
 * the agent itself refuses a second recorder that comes at the same moment. The recorder is searched only if there
 * may be one, because that scans the descriptors of the whole host. `isExpected`: whether the recorder of a recording
 * with this path does not count.
 */
export function otherRecorderOf(
  pid: Pid,
  isExpected: (recordingPath: string) => boolean = () => false,
): TidemarkError | null {
  if (!isMappingNamed(pid, POOL_NAMES)) {
    return null;
  }
  const growing = growingRecordingOf(pid);
  if (growing !== null && isExpected(growing)) {
    return null;
  }
  if (growing !== null) {
    const { recorder } = reopenRecording(growing).meta;
    return alreadyAttached(
      pid,
      `process ${recorder.pid}, to ${growing}`,
      `view that recording with: tidemark live ${shellWord(growing)}`,
    );
  }
  const left = leftAgentOf(pid);
  return left === null || left.isOlder ? null : recorderDied(pid, left.guard);
}

interface PoolPlace {
  readonly pool: PoolReader;
  readonly descriptor: number;
  /** null: the pool is a file, which no process keeps open. */
  readonly keeper: { readonly pid: Pid; readonly fd: number } | null;
  readonly setOrphan: (path: string) => void;
  close(): void;
}

/** The pool that the agent writes to: ours, or its own. */
function openPool(pid: Pid, status: AgentStatus, stood: boolean, keeper: PoolKeeper): PoolPlace {
  if (status.pool === keeper.path) {
    return {
      pool: keeper.pool,
      descriptor: keeper.descriptor,
      keeper: { pid: keeper.pid, fd: keeper.fd },
      setOrphan: (path) => keeper.setOrphan(path),
      close() {},
    };
  }
  const [, owner, fd] = /^\/proc\/(\d+)\/fd\/(\d+)$/.exec(status.pool) ?? [];
  // Its own descriptor, using the pid of its own pid namespace; or its guard's.
  const candidates =
    fd === undefined ? [`/proc/${pid}/root${status.pool}`] : [status.pool, `/proc/${pid}/fd/${fd}`];
  for (const path of candidates) {
    const descriptor = openMapped(pid, path);
    if (descriptor === null) {
      continue;
    }
    try {
      const pool = new PoolReader(descriptor);
      const header = pool.header();
      if (header.runId === status.run) {
        if (stood && header.leaseUntilMs > monotonicMs()) {
          throw owner === undefined
            ? recorderDied(pid, null)
            : alreadyAttached(
                pid,
                `tidemark (its guard is process ${owner})`,
                "wait until it ends, or end it there with Ctrl-C",
              );
        }
        if (!stood) {
          pool.setLease(monotonicMs() + FIRST_LEASE_MS);
        }
        return {
          pool,
          descriptor,
          keeper: fd === undefined ? null : { pid, fd: Number(fd) },
          setOrphan() {},
          close: () => closeSync(descriptor),
        };
      }
    } catch (error) {
      closeSync(descriptor);
      if (error instanceof TidemarkError && error.id === "TM-E037") {
        throw error;
      }
      continue;
    }
    closeSync(descriptor);
  }
  throw stood
    ? alreadyAttached(pid, "another recorder", `end it with: tidemark detach ${pid}`)
    : agentRefused(pid, `its memory cannot be opened from this process (${status.pool})`);
}

/**
 * The process names the path, so it may be any: only a regular file that the process has mapped is used. Opening
 * another file may have effects of its own (a device), or wait (a FIFO).
 */
function openMapped(pid: Pid, path: string): number | null {
  let found: number | null = null;
  try {
    found = openSync(path, OPEN_PATH);
    const { ino } = fstatSync(found);
    const isPool = fstatSync(found).isFile() && isMapping(pid, "tidemark-pool", ino) === true;
    return isPool ? openSync(`/proc/self/fd/${found}`, "r+") : null;
  } catch {
    return null;
  } finally {
    if (found !== null) {
      closeSync(found);
    }
  }
}

interface Entered {
  readonly entered: RemoteAnswer;
  readonly stood: boolean;
  readonly startTicks: number;
  /** How children are armed with the same pool; null if the pool is not ours to share. */
  readonly owner: ArmOptions | null;
}

function notSeenOf(stood: boolean, { follow }: AttachOptions): string[] {
  return [
    stood
      ? "The program's environment had armed the agent before this recording began."
      : "Attached to a running program: earlier allocations are not in the profile, nor are calls of malloc through pointers that it resolved before (ctypes, cffi).",
    ...(stood || follow === false
      ? []
      : ["Programs that it starts from now on are not profiled: attach to each of them."]),
  ];
}

async function record(
  options: AttachOptions,
  place: PoolPlace,
  { entered, stood, startTicks, owner }: Entered,
): Promise<AttachResult> {
  const { pid } = options;
  const notes: string[] = [];
  const { runId, periodBytes } = place.pool.header();
  const pool = { runId, periodBytes, keeper: place.keeper };
  const recording = beginRecording(options, pool);
  const { path, writer, command, startedMs: beganMs } = recording;
  place.setOrphan(orphanPath(path));
  writer.limits(beganMs, notSeenOf(stood, options));
  const recorder = new Recorder({
    writer,
    pid,
    startTicks,
    command,
    startedMs: beganMs,
    programStartedMs: Math.min(beganMs, startTimeMs(startTicks)),
    follow: options.follow ?? true,
    pool: new PoolWatch(place.pool, place.descriptor, pid),
    devices: options.devices ? new DeviceWatch(options.devices, dirname(path)) : null,
    budget: options.budget ?? new CpuBudget(),
    memory: new MemoryRoom(),
    endsMs: options.onLookup && (options.forMs ?? Number.POSITIVE_INFINITY),
    ...(options.texts && { texts: options.texts }),
    ...(options.deviceUse && { deviceUse: options.deviceUse }),
    ...(options.exitOf && { exitOf: options.exitOf }),
    ...(options.rssMs && { rssMs: options.rssMs }),
  });
  recorder.start();
  options.onRecording?.(entered, path);
  const over = new AbortController();
  const children = owner === null ? [] : childrenToAttach(pid, childrenOf(options));
  if (owner === null && childrenToAttach(pid, childrenOf(options)).length > 0) {
    writer.limits(nowMs(), [
      "Existing children are not profiled: the agent records to its own memory, which they cannot open.",
    ]);
  }
  const arming =
    owner === null
      ? Promise.resolve(0)
      : armChildren(children, owner, over.signal, (sentence) => {
          writer.limits(nowMs(), [sentence]);
        });
  const ended = await wait(options, recorder, path);
  over.abort();
  const childPauseMs = await arming;
  let detachPauseMs = 0;
  if (ended) {
    await recorder.finish(null, options.outcomeOf);
  } else {
    const onLookup = options.until?.aborted ? undefined : options.onLookup;
    recorder.leave(onLookup !== undefined);
    detachPauseMs = stood ? 0 : await leave(pid, notes);
    // Forked children disarm themselves; an agent that was armed without a recorder continues without one.
    place.pool.setLease(
      stood && place.pool.header().leaseUntilMs === 0 ? 0 : monotonicMs() + LAST_LEASE_MS,
    );
    await recorder.concludeLeft(onLookup, options.until);
    if (!stood) {
      notes.push(...(await childrenLeft(pid, children, options.until)));
    }
  }
  writer.close();
  place.setOrphan("");
  const unsent = await recording.sendRest();
  if (unsent) {
    notes.push(unsent);
  }
  return {
    recordingPath: path,
    notes,
    recorderCpuMs: recorder.cpuMs,
    ended,
    attachPauseMs: Math.max(entered.longestPauseMs, childPauseMs),
    detachPauseMs,
    open: () => reopenRecording(writer.path, writer.memory),
  };
}

function childrenOf({ children, follow }: AttachOptions): ChildrenChoice {
  return follow === false ? "none" : (children ?? "same-program");
}

/** True if the process ended. */
async function wait(
  { forMs = Number.POSITIVE_INFINITY, enough, until }: AttachOptions,
  recorder: Recorder,
  path: string,
): Promise<boolean> {
  const begun = monotonicMs();
  while (recorder.rootLives) {
    const leftMs = begun + forMs - monotonicMs();
    const isEnough = leftMs <= 0 || until?.aborted || (await enough?.(monotonicMs() - begun, path));
    if (isEnough) {
      return false;
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, Math.min(enough === undefined ? IDLE_MS : CHECK_MS, leftMs));
      recorder.onRootEnd = done;
      function done() {
        clearTimeout(timer);
        recorder.onRootEnd = null;
        until?.removeEventListener("abort", done);
        resolve();
      }
      until?.addEventListener("abort", done);
    });
  }
  return true;
}

/** Disarms the agent; if the process does not run Python code in time, the agent disarms itself when the lease ends. */
async function leave(pid: Pid, notes: string[]): Promise<Millis> {
  try {
    const { status, entered } = await disarmAgent(pid, { waitMs: LEAVE_MS });
    if (status !== null && status.state === "leaving") {
      notes.push("Its last hooks are removed when one of its threads next runs Python code.");
    }
    return entered.longestPauseMs;
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    if (error.id !== processGone(pid).id) {
      notes.push(`The agent disarms itself at the program's next allocation: ${error.what}.`);
    }
    return 0;
  }
}
