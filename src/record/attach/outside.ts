/**
 * Records a running program from outside, at a distance that its caller chooses: nothing is loaded into it, and no
 * holders are looked up. A poll reads the files of /proc that `Recorder` reads at its cheap polls; of a process that does
 * not change, only its RSS (process/figure_turns.ts), unless a memory limit is near or its group waits for memory.
 */
import { hasEnded, type RecentTexts, readStat, startTimeMs } from "../../linux/index.js";
import { monotonicMs, nowMs } from "../../linux/this_process/clock.js";
import type { Millis, Pid, TimeMs } from "../../model/base/units.js";
import { processGone } from "../../model/errors/errors.js";
import type { MemoryEnd } from "../../model/profile/memory_end.js";
import type { MetricRow } from "../../recording/writer.js";
import type { DeviceUse } from "../devices/device_use.js";
import { type ExitOf, endByKernel } from "../process/exit_report.js";
import { MemoryWatch } from "../process/memory_watch.js";
import { ProcessTree, type SparsePoll } from "../process/process_tree.js";
import { RequestRates } from "../process/request_rates.js";
import type { TreePoll } from "../process/tree_poll.js";
import { type BegunRecording, beginRecording, type RecordingStart } from "./begun_recording.js";

interface OutsideOptions extends RecordingStart {
  /** Record its child processes, too. */
  readonly follow: boolean;
  /** Shared by recordings that are polled at the same moments. */
  readonly texts?: RecentTexts;
  readonly deviceUse?: DeviceUse;
  /**
   * When a process was last seen to start below this one, on the clock of `monotonicMs`; infinite in the past: never. Left
   * out: each poll searches.
   */
  readonly startedBelowMs?: (pid: Pid) => Millis;
  readonly exitOf?: ExitOf;
}

/** PSS walks every page, so it is read only every this many polls. */
const POLLS_PER_SHARES = 20;
/** Readings are written together, so a server gets them this much later at most. */
const WRITE_MS: Millis = 60_000;

export class OutsideRecording {
  readonly pid: Pid;
  readonly #recording: BegunRecording;
  readonly #tree: ProcessTree;
  readonly #memory: MemoryWatch;
  readonly #startedBelowMs: (pid: Pid) => Millis;
  readonly #addDeviceUse: ((poll: TreePoll) => void) | undefined;
  readonly #requests: RequestRates;
  readonly #outcomeOf: RecordingStart["outcomeOf"];
  #polls = 0;
  #searchedMs: Millis = 0;
  /** Processes that ran out of memory so far. */
  readonly memoryEnds: MemoryEnd[] = [];
  /** Readings that are not written yet. */
  #pending: MetricRow[] = [];
  #writtenMs: TimeMs = 0;

  /** Throws TidemarkError if there is no such process, or the file cannot be opened. */
  constructor(options: OutsideOptions) {
    const { pid, follow, texts, exitOf } = options;
    const { startedBelowMs = () => Number.POSITIVE_INFINITY } = options;
    this.#startedBelowMs = startedBelowMs;
    this.#outcomeOf = options.outcomeOf;
    this.#addDeviceUse = options.deviceUse?.reader();
    const stat = readStat(pid);
    if (stat === null || hasEnded(stat)) {
      throw processGone(pid);
    }
    this.pid = pid;
    this.#recording = beginRecording(options, null);
    const { writer, command, startedMs } = this.#recording;
    writer.limits(startedMs, [
      "Recorded from outside: there are no allocation sites, because the program has no agent.",
    ]);
    const programStartedMs = Math.min(startedMs, startTimeMs(stat.startTicks));
    this.#tree = new ProcessTree(
      pid,
      stat.startTicks,
      command,
      startedMs,
      follow,
      programStartedMs,
      (row, seenMs) => endByKernel(exitOf, row.pid, seenMs),
    );
    this.#memory = new MemoryWatch(pid, texts);
    this.#requests = new RequestRates(startedMs);
  }

  /** @returns false once the program has ended; its recording can then be closed. */
  poll(): boolean {
    const isExpensive = this.#polls++ % POLLS_PER_SHARES === 0;
    const poll = this.#tree.poll(
      nowMs(),
      isExpensive,
      this.#memory.isTight ? null : this.#sparse(),
    );
    const lives = this.#tree.livingPids.includes(this.pid);
    if (lives) {
      this.#addDeviceUse?.(poll);
      this.#requests.poll(poll);
    }
    const report = this.#outcomeOf === undefined ? undefined : null; // null: it is known later
    const ends = this.#memory.poll(poll, lives, report);
    this.memoryEnds.push(...ends);
    this.#recording.writer.memoryEnds(poll.timeMs, ends);
    this.#write(poll);
    return lives;
  }

  #sparse(): SparsePoll {
    const searchedMs = this.#searchedMs;
    this.#searchedMs = monotonicMs();
    return { hasStartedBelow: (pid) => this.#startedBelowMs(pid) >= searchedMs };
  }

  /** Ends the recording; waits until the server has it, or for a while. */
  async close(): Promise<void> {
    const timeMs = this.#tree.rootEndMs ?? nowMs();
    const { writer } = this.#recording;
    const hasEnded = !this.#tree.livingPids.includes(this.pid);
    if (hasEnded) {
      this.#write(this.#tree.end(timeMs, this.#tree.outliving().length));
    }
    this.#writePending(timeMs);
    const { exitCode = null, signal = null } = hasEnded ? ((await this.#outcomeOf?.()) ?? {}) : {};
    writer.end({ timeMs, exitCode, signal, maxRssBytes: 0, userMs: 0, systemMs: 0 });
    writer.close();
    await this.#recording.sendRest();
  }

  #write({ timeMs, rows, events, limits, metrics }: TreePoll): void {
    const { writer } = this.#recording;
    if (rows.length > 0) {
      writer.processes(timeMs, rows);
    }
    writer.events(timeMs, events);
    writer.limits(timeMs, limits);
    this.#pending.push(...metrics);
    if (rows.length > 0 || events.length > 0 || timeMs - this.#writtenMs >= WRITE_MS) {
      this.#writePending(timeMs);
    }
  }

  #writePending(timeMs: TimeMs): void {
    this.#recording.writer.metrics(timeMs, this.#pending);
    this.#pending = [];
    this.#writtenMs = timeMs;
  }
}
