/**
 * Watches the devices of a recorded program and its children: a thread in each process that may use a device
 * reports figures once per second and writes snapshots of torch's allocator when needed (device_line.ts).
 *
 *   poll ── which processes have loaded torch, JAX or TensorFlow? ── enter them, a few at a time
 *   beat ── figures ──────────────> rows of the next poll
 *   snapshot of one rank ─────────> "dump" to the others, its path an event of the recording
 *
 * A child that is a mere fork (a worker that loads data) is entered only when it has a device mapped: the
 * driver's mappings are not inherited. A process that cannot be entered is reported once and then left alone.
 */
import { statSync } from "node:fs";
import {
  type DeviceFigures,
  type FrameworkFigures,
  fragmentationRatio,
  parseFigures,
} from "../../gpu/devices/device_figures.js";
import { isMappingNamed, readStat } from "../../linux/index.js";
import { monotonicMs, nowMs } from "../../linux/this_process/clock.js";
import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import { oneLine, TidemarkError } from "../../model/errors/errors.js";
import {
  DEVICE_FIGURES,
  deviceMetric,
  MOST_DEVICES,
  type TimelineEvent,
} from "../../model/profile/series.js";
import type { MetricRow } from "../../recording/writer.js";
import type { TreePoll } from "../process/tree_poll.js";
import { type DeviceLine, type DeviceMessage, openDeviceLine } from "./device_line.js";

/** How the devices of the recorded processes are watched. */
export interface DeviceWatchOptions {
  /** A snapshot is written when this share of a device is reserved: above 0, at most 1. */
  readonly threshold: number;
  /** Total size of all snapshots of one process. */
  readonly budgetBytes: Bytes;
}

/** Torch's part of Python, JAX's runtime, TensorFlow's: libraries that a process maps before it can use a device. */
const FRAMEWORKS = /^(?:libtorch_python|libjax_common|xla_extension|libtensorflow_framework)\b/;
/** /dev/nvidia0, nvidiactl, nvidia-uvm; /dev/kfd and /dev/dri/renderD128. */
const DRIVER = /^(?:nvidia|kfd$|renderD\d)/;
const MOST_ENTERING = 4;
/**
 * Time between two checks of a process's mappings: a quarter of the time since it was first seen, within these
 * limits.
 */
const SHORTEST_CHECK_MS = 200;
const LONGEST_CHECK_MS = 10_000;
const ENTER_MS = 60_000;
/** Least time between two snapshots of a rank that make the others write theirs, and between two by threshold. */
const COOLDOWN_MS = 60_000;
/** Time for the last messages of a program that has ended. */
const ENDED_MS = 1_000;
/** Ring of the allocator's history, in entries. */
const HISTORY_ENTRIES = 100_000;

interface Watched {
  readonly pid: Pid;
  readonly foundMs: Millis;
  nextCheckMs: Millis;
  state: "outside" | "entering" | "inside" | "left";
  line: DeviceLine | null;
  figures: readonly FrameworkFigures[];
  /** Whether figures arrived since the last poll. */
  fresh: boolean;
}

export class DeviceWatch {
  readonly #watched = new Map<Pid, Watched>();
  readonly #abort = new AbortController();
  #limits: string[] = [];
  #events: TimelineEvent[] = [];
  #dumpedMs = Number.NEGATIVE_INFINITY;
  #entering = 0;
  #found = false;

  readonly #options: DeviceWatchOptions;
  readonly #folder: string;

  /** `folder`: where snapshots are written, for processes that see the same files. */
  constructor(options: DeviceWatchOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
  }

  /** Adds the messages since the last poll, and enters processes that are due. */
  poll(poll: TreePoll): void {
    const living = poll.tree.livingSeries;
    for (const pid of this.#watched.keys()) {
      if (!living.has(pid)) {
        this.#watched.delete(pid);
      }
    }
    for (const [pid, series] of living) {
      const process = this.#watched.get(pid) ?? this.#add(pid);
      this.#enterIfDue(process);
      if (process.fresh) {
        process.fresh = false;
        poll.metrics.push(...rowsOf(process.figures, series, poll.timeMs));
      }
    }
    this.#onProgress(poll);
  }

  /** The program has ended: handles its last messages, such as the snapshot before its last error. */
  async lastWords(poll: TreePoll): Promise<void> {
    const until = monotonicMs() + ENDED_MS;
    while (this.#lines().length > 0 && monotonicMs() < until) {
      await new Promise((wake) => setTimeout(wake, 10));
    }
    this.leave();
    if (!this.#found) {
      this.#limits.push("No process loaded torch, JAX or TensorFlow, so no device is known.");
    }
    this.#onProgress(poll);
  }

  /** Switches off what was switched on in the processes. */
  leave(): void {
    this.#abort.abort();
    for (const process of this.#lines()) {
      this.#left(process);
    }
  }

  #add(pid: Pid): Watched {
    const now = monotonicMs();
    const process: Watched = {
      pid,
      foundMs: now,
      nextCheckMs: now,
      state: "outside",
      line: null,
      figures: [],
      fresh: false,
    };
    this.#watched.set(pid, process);
    return process;
  }

  #lines(): Watched[] {
    return [...this.#watched.values()].filter(({ line }) => line !== null);
  }

  #left(process: Watched): void {
    process.line?.close();
    process.line = null;
    process.state = "left";
  }

  #onProgress(poll: TreePoll): void {
    poll.limits.push(...this.#limits.splice(0));
    poll.events.push(...this.#events.splice(0));
  }

  #enterIfDue(process: Watched): void {
    const now = monotonicMs();
    if (
      process.state !== "outside" ||
      now < process.nextCheckMs ||
      this.#entering >= MOST_ENTERING ||
      this.#abort.signal.aborted
    ) {
      return;
    }
    const knownMs = now - process.foundMs;
    process.nextCheckMs =
      now + Math.min(LONGEST_CHECK_MS, Math.max(SHORTEST_CHECK_MS, knownMs / 4));
    const wanted = isMereFork(process.pid) ? DRIVER : FRAMEWORKS;
    if (isMappingNamed(process.pid, wanted)) {
      this.#found = true;
      void this.#enter(process);
    }
  }

  async #enter(process: Watched): Promise<void> {
    const { pid } = process;
    process.state = "entering";
    this.#entering += 1;
    const image = readStat(pid)?.stackStart;
    try {
      const line = await openDeviceLine(
        pid,
        { watch: this.#orders(pid) },
        { waitMs: ENTER_MS, signal: this.#abort.signal },
      );
      process.line = line;
      process.state = "inside";
      line.listen(
        (message) => this.#hear(process, message),
        () => {
          process.line = null;
          // After exec it is another program, which may use devices itself.
          if (process.state === "inside" && readStat(pid)?.stackStart !== image) {
            process.state = "outside";
          }
        },
      );
      if (this.#abort.signal.aborted) {
        this.#left(process); // the time ended while it was being entered
      }
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      process.state = "left";
      if (!this.#abort.signal.aborted) {
        this.#limits.push(`The devices of process ${pid} are unknown: ${error.what}.`);
      }
    } finally {
      this.#entering -= 1;
    }
  }

  #orders(pid: Pid) {
    const { threshold, budgetBytes } = this.#options;
    return {
      period: 1,
      threshold,
      directory: seesSameFiles(pid) ? this.#folder : "/tmp",
      max_entries: HISTORY_ENTRIES,
      cooldown: COOLDOWN_MS / 1000,
      budget_bytes: budgetBytes,
    };
  }

  #hear(process: Watched, message: DeviceMessage): void {
    const { pid } = process;
    if ("beat" in message) {
      process.figures = parseFigures(message.beat);
      process.fresh = true;
      if (process.figures.every(({ state }) => state === "cpu-only")) {
        const names = process.figures.map(({ name, version }) => `${name} ${version}`).join(", ");
        this.#limits.push(`Process ${pid} has no device to watch: ${names} cannot use one here.`);
        this.#left(process);
      }
    }
    if (typeof message.note === "string") {
      this.#limits.push(`Devices of process ${pid}: ${oneLine(message.note)}.`);
    }
    if (typeof message.snapshot === "string") {
      const reason = String(message.reason);
      const path = oneLine(message.snapshot);
      this.#events.push({
        timeMs: nowMs(),
        pid,
        kind: "gpu-snapshot",
        detail: `${reason}: ${path}`,
      });
      this.#limits.push(`A snapshot of process ${pid}'s device was written (${reason}): ${path}`);
      if (reason !== "peer") {
        this.#askOthers(process);
      }
    }
  }

  /** A problem of one rank concerns the whole job; the other ranks' memory at that moment shows the outlier. */
  #askOthers(asking: Watched): void {
    const now = monotonicMs();
    if (now - this.#dumpedMs < COOLDOWN_MS) {
      return;
    }
    this.#dumpedMs = now;
    for (const process of this.#lines()) {
      if (process !== asking) {
        process.line?.say("dump");
      }
    }
  }
}

/** If two frameworks use one device, the first reports it: torch before JAX before TensorFlow. */
function rowsOf(
  frameworks: readonly FrameworkFigures[],
  series: number,
  timeMs: TimeMs,
): MetricRow[] {
  const devices = new Map<number, DeviceFigures>();
  for (const device of frameworks.flatMap((framework) => framework.devices)) {
    if (device.index < MOST_DEVICES && !devices.has(device.index)) {
      devices.set(device.index, device);
    }
  }
  const rows: MetricRow[] = [];
  for (const [index, device] of devices) {
    const figures = { ...device, fragmentationRatio: fragmentationRatio(device) };
    for (const figure of DEVICE_FIGURES) {
      const value = figures[figure];
      if (value !== null) {
        rows.push({ timeMs, series, metric: deviceMetric(index, figure), value });
      }
    }
  }
  const pinned = frameworks.find((framework) => framework.pinned !== null)?.pinned?.ownedBytes;
  return pinned == null
    ? rows
    : [...rows, { timeMs, series, metric: "gpu.pinnedBytes", value: pinned }];
}

/** True if it was forked and has not called exec since: the same stack at the same address. */
function isMereFork(pid: Pid): boolean {
  const stat = readStat(pid);
  const parent = stat === null ? null : readStat(stat.parentPid);
  return stat !== null && parent !== null && stat.stackStart === parent.stackStart;
}

function seesSameFiles(pid: Pid): boolean {
  try {
    const [own, its] = [statSync("/"), statSync(`/proc/${pid}/root/`)];
    return own.ino === its.ino && own.dev === its.dev;
  } catch {
    return false;
  }
}
