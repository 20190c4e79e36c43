/**
 * The Python processes of the host, read repeatedly. A scan lists /proc and reads new processes; every few scans it
 * checks whether a known pid still belongs to the same process.
 */

import type { Pid, TimeMs } from "../../model/base/units.js";
import type { ServiceIdentity } from "../../model/wire/identity.js";
import { declaredIdentity, joinedIdentity } from "../../model/wire/identity.js";
import { hasEnded, type ProcessStat, readStat, startTimeMs } from "../process/process.js";
import { type PythonProcess, readPythonProcess } from "../process/python_processes.js";
import { listPids } from "../process/tree.js";
import { readEnvironment, usualName } from "./environment.js";

export interface ScannedProcess extends Omit<PythonProcess, "children" | "endedChildren"> {
  /** Distinguishes it from a later process with the same pid, and from the program before an exec. */
  readonly key: string;
  readonly identity: ServiceIdentity;
  /** What its environment names, and the name that it gets otherwise. */
  readonly declared: ServiceIdentity;
  readonly name: string;
  readonly startedMs: TimeMs;
}

interface Known {
  readonly key: string;
  readonly found: ScannedProcess | null;
  /** When its figures expire; for a process without Python, when to check again whether it has loaded Python. */
  dueMs: number;
  distanceMs: number;
  /** When to check whether the pid still belongs to this process. */
  checkMs: number;
  /** Number of the last scan that saw it, and its time. */
  scan: number;
  seenMs: number;
  /** When it was last known not to be a zombie. */
  livedMs: number;
}

/** A Python process is examined again after this time, which doubles each time, and at once if its parent has changed. */
const REFRESH_MS = 60_000;
const LAST_REFRESH_MS = 480_000;
/** A process without Python is examined again after this time, which doubles each time. */
const FIRST_AGAIN_MS = 2_000;
const LAST_AGAIN_MS = 600_000;
/** Ends that are remembered, for recordings that notice them later. */
const MOST_GONE = 5_000;
/** A pid that is used again, or an exec, is noticed within this time. */
const CHECK_MS = 12_000;
/** Where the kernel reports ends, and execs of Python, those are noticed at the next scan, and other execs within this time. */
const REPORTED_CHECK_MS = 60_000;

/**
 * Most programs that a host starts end sooner: only what is called Python is examined before. The scan after that finds the
 * others within five seconds.
 */
const YOUNG_MS = 2_000;
const PYTHON_NAME = /^python/;

/** The scan that examines a process sets these. */
const UNSEEN = { checkMs: 0, scan: 0, seenMs: 0, livedMs: 0 } as const;

export class PythonScan {
  readonly #known = new Map<Pid, Known>();
  #scans = 0;
  #found: readonly ScannedProcess[] = [];
  /** What {@link #known} has found differs from {@link #found}. */
  #hasChanged = false;
  /** By parent. */
  readonly #startedBelowMs = new Map<Pid, number>();
  /** Reported by {@link examine} since the last scan. */
  readonly #asked = new Set<Pid>();
  readonly #isReported: () => boolean;
  readonly #onGone: (pid: Pid) => void;
  /** When Python processes that have ended were last seen. */
  readonly #gone = new Map<Pid, number>();

  /**
   * `isReported`: whether {@link ended} is called for each end, and {@link examine} for each exec of Python. `onGone`: a
   * Python process has ended since the last scan.
   */
  constructor(isReported: () => boolean = () => false, onGone: (pid: Pid) => void = () => {}) {
    this.#isReported = isReported;
    this.#onGone = onGone;
  }

  /** The last moment at which a process that lived at `aliveMs` was seen; null: it is not known to have ended. */
  lastSeenMs(pid: Pid, aliveMs: number): number | null {
    const seenMs = this.#gone.get(pid);
    return seenMs === undefined || seenMs < aliveMs ? null : seenMs;
  }

  /** The process with this pid is a new one, or has called exec: the next scan examines it. */
  examine(pid: Pid): void {
    this.#forget(pid);
    this.#asked.add(pid);
  }

  /** The process with this pid has ended: the next scan checks whether the pid is used again. */
  ended(pid: Pid): void {
    const known = this.#known.get(pid);
    if (known !== undefined) {
      known.checkMs = 0;
    }
  }

  /** When a scan first saw a child of this process, Python or not: the newest one. */
  startedBelowMs(pid: Pid): number {
    return this.#startedBelowMs.get(pid) ?? Number.NEGATIVE_INFINITY;
  }

  /**
   * Ascending by pid, without this process; the same array as before if nothing has changed. `nowMs`: any clock that only
   * moves forward.
   */
  read(nowMs: number): readonly ScannedProcess[] {
    const isFirst = this.#known.size === 0;
    const scan = ++this.#scans;
    const checkMs = this.#isReported() ? REPORTED_CHECK_MS : CHECK_MS;
    let count = 0;
    for (const pid of listPids()) {
      const before = this.#known.get(pid);
      if (before !== undefined && nowMs < Math.min(before.dueMs, before.checkMs)) {
        before.scan = scan;
        before.seenMs = nowMs;
        count += 1;
        continue;
      }
      const stat = pid === process.pid ? null : readStat(pid);
      if (stat === null || hasEnded(stat)) {
        if (before !== undefined) {
          before.seenMs = before.livedMs; // it may have been a zombie since then
        }
        continue;
      }
      if (before === undefined) {
        this.#startedBelowMs.set(stat.parentPid, nowMs);
        if (!isFirst && !this.#asked.has(pid) && isYoung(stat)) {
          continue;
        }
      }
      const key = `${pid}:${stat.startTicks}:${stat.stackStart || stat.name}`;
      const same = before?.key === key ? before : undefined;
      const isKnown =
        same !== undefined &&
        nowMs < same.dueMs &&
        (same.found === null || same.found.parentPid === stat.parentPid);
      const current = isKnown ? same : examine(pid, key, same, nowMs);
      this.#hasChanged ||= current.found !== (before?.found ?? null);
      current.checkMs = nowMs + checkMs;
      current.scan = scan;
      current.seenMs = nowMs;
      current.livedMs = nowMs;
      count += 1;
      this.#known.set(pid, current);
    }
    this.#asked.clear();
    if (count < this.#known.size) {
      this.#forgetUnseen();
    }
    if (this.#hasChanged) {
      this.#hasChanged = false;
      const found = Array.from(this.#known.values(), (known) => known.found ?? []).flat();
      this.#found = found.sort((a, b) => a.pid - b.pid);
    }
    return this.#found;
  }

  #forgetUnseen(): void {
    for (const [pid, { scan, found, seenMs }] of this.#known) {
      if (scan !== this.#scans) {
        this.#forget(pid);
        if (found !== null) {
          this.#rememberGone(pid, seenMs);
        }
      }
    }
    for (const parent of this.#startedBelowMs.keys()) {
      if (!this.#known.has(parent)) {
        this.#startedBelowMs.delete(parent);
      }
    }
  }

  #rememberGone(pid: Pid, seenMs: number): void {
    this.#gone.delete(pid);
    this.#gone.set(pid, seenMs);
    const [oldest] = this.#gone.keys();
    if (this.#gone.size > MOST_GONE && oldest !== undefined) {
      this.#gone.delete(oldest);
    }
    this.#onGone(pid);
  }

  #forget(pid: Pid): void {
    this.#hasChanged ||= (this.#known.get(pid)?.found ?? null) !== null;
    this.#known.delete(pid);
  }
}

function isYoung({ name, startTicks }: ProcessStat): boolean {
  return !PYTHON_NAME.test(name) && Date.now() - startTimeMs(startTicks) < YOUNG_MS;
}

function examine(pid: Pid, key: string, before: Known | undefined, nowMs: number): Known {
  const python = readPythonProcess(pid, false, before?.found?.interpreter);
  if (python === null) {
    const distanceMs = Math.min(LAST_AGAIN_MS, (before?.distanceMs ?? FIRST_AGAIN_MS / 2) * 2);
    return { key, found: null, dueMs: nowMs + distanceMs, distanceMs, ...UNSEEN };
  }
  const declared = before?.found?.declared ?? declaredIdentity(readEnvironment(pid));
  const name = before?.found?.name ?? usualName(pid, python.command);
  const identity = joinedIdentity([declared, { service: name }]);
  const startedMs = before?.found?.startedMs ?? startTimeMs(python.startTicks);
  const distanceMs =
    before?.found == null ? REFRESH_MS : Math.min(LAST_REFRESH_MS, before.distanceMs * 2);
  return {
    key,
    found: { ...python, key, identity, declared, name, startedMs },
    dueMs: nowMs + distanceMs,
    distanceMs,
    ...UNSEEN,
  };
}
