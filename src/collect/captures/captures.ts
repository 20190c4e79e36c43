/**
 * Makes captures, one after the other, within two budgets: CPU time of the host, and captures of a service in an hour.
 * Last moments have a count of their own, so that what triggers captured before does not prevent them.
 *
 *     fired trigger ──> queue ──> process of its own ──> files and about.json ──> event
 *
 * A capture that hangs is killed, and its folder is removed.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { isMappingNamed } from "../../linux/index.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import { hostName } from "../../linux/this_process/host_name.js";
import type { Millis, Pid } from "../../model/base/units.js";
import type {
  ArtifactFileJson,
  ArtifactJson,
  Capture,
} from "../../model/documents/artifact_document.js";
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { Artifacts } from "../kept/artifacts.js";
import type { CaptureBounds } from "../policy/bounds.js";
import type { Program } from "../policy/programs.js";
import type { CaptureAnswer, CaptureRequest } from "./capture_process.js";
import { rssOfProcess } from "./triggers.js";

export interface WantedCapture {
  readonly program: Program;
  /** The condition with its figures, as part of a sentence. */
  readonly reason: string;
  readonly captures: readonly Capture[];
  /** null: the program has none. */
  readonly recording: string | null;
  /** A process of it was killed for memory or crashed; the recording is kept as well. */
  readonly lastMoment: boolean;
  /** The program continues, and with it its recording. */
  readonly isGrowing?: boolean;
  /**
   * Asked for at this moment of the monotonic clock: neither captures that wait nor the CPU budget delay it, the limit of an
   * hour applies, and it is dropped if it cannot start within {@link LATE_MS}. undefined: whenever there is time.
   */
  readonly atMs?: Millis;
  /** Called once. Without `atMs`, an action waits for it: neither the limit of an hour nor the CPU budget delays it. */
  readonly onDone?: (outcome: { readonly path: string } | { readonly why: string }) => void;
}

export type CaptureEvent =
  | {
      readonly kind: "captured";
      readonly program: Program;
      readonly reason: string;
      readonly path: string;
      readonly verdict: DiagnosisJson["verdict"] | null;
      readonly files: readonly ArtifactFileJson[];
      readonly problems: readonly string[];
    }
  | { readonly kind: "not-captured"; readonly program: Program; readonly why: string };

/** A timed capture that starts later than this shows another moment than those of other hosts. */
export const LATE_MS: Millis = 10_000;
/** Most CPU time that can accumulate for a burst. */
const MOST_CREDIT_MS: Millis = 15_000;
const LONGEST_MS: Millis = 180_000;
const MOST_WAITING = 50;
const HOUR: Millis = 3_600_000;
/** Limit on the capturing process's own heap, not counting its copy of a program's heap. */
const HEAP_MIB = 1024;
const DEVICE_LIBRARIES = /^(?:libcuda\.so|libtorch_cuda)/;

/** Which waiting capture starts first; of ended programs, because no other copy of their last moment exists. */
const TURN = { timed: 0, action: 1, lastMoment: 2, other: 3 };

function turnOf({ atMs, onDone, lastMoment }: WantedCapture): number {
  if (atMs !== undefined) {
    return TURN.timed;
  }
  if (onDone !== undefined) {
    return TURN.action;
  }
  return lastMoment ? TURN.lastMoment : TURN.other;
}

export class Captures {
  readonly #artifacts: Artifacts;
  readonly #onEvent: (event: CaptureEvent) => void;
  readonly #stop = new AbortController();
  #waiting: WantedCapture[] = [];
  #working: Promise<void> | null = null;
  #creditMs = MOST_CREDIT_MS;
  #creditedMs: Millis | null = null;
  /** By kind and service: when captures were made. */
  readonly #made = new Map<string, Millis[]>();

  constructor(artifacts: Artifacts, onEvent: (event: CaptureEvent) => void) {
    this.#artifacts = artifacts;
    this.#onEvent = onEvent;
  }

  want(wanted: WantedCapture, { perHour }: CaptureBounds, nowMs: Millis): void {
    const { program, reason } = wanted;
    const { service } = program.root.identity;
    const kind = wanted.lastMoment ? "last moments" : "captures";
    const counted = `${kind} ${service}`;
    const made = (this.#made.get(counted) ?? []).filter((timeMs) => nowMs - timeMs < HOUR);
    const refuse = (why: string) => this.#refuse(wanted, why);
    if (this.#stop.signal.aborted) {
      wanted.onDone?.({ why: "watch ended" });
    } else if (turnOf(wanted) === TURN.action) {
      this.#enqueue(wanted);
    } else if (made.length >= perHour) {
      refuse(`${reason}, but ${service} has reached its limit of ${kind} in an hour (${perHour})`);
    } else if (this.#waiting.length >= MOST_WAITING) {
      refuse(`${reason}, but ${MOST_WAITING} captures are waiting`);
    } else {
      this.#made.set(counted, [...made, nowMs]);
      this.#enqueue(wanted);
    }
  }

  /** Starts the next capture if the budget allows it. */
  next({ cpu, maxPauseMs }: CaptureBounds, nowMs: Millis): void {
    const earned = cpu * (nowMs - (this.#creditedMs ?? nowMs));
    this.#creditMs = Math.min(MOST_CREDIT_MS, this.#creditMs + earned);
    this.#creditedMs = nowMs;
    this.#dropLate(nowMs);
    if (this.#working !== null) {
      return;
    }
    // Without credit, only those that nothing may delay.
    const at = this.#waiting.findIndex(
      (wanted) => this.#creditMs > 0 || turnOf(wanted) <= TURN.action,
    );
    const [wanted] = at < 0 ? [] : this.#waiting.splice(at, 1);
    if (wanted !== undefined) {
      this.#working = this.#make(wanted, maxPauseMs).finally(() => {
        this.#working = null;
      });
    }
  }

  #enqueue(wanted: WantedCapture): void {
    const place = this.#waiting.findIndex((one) => turnOf(one) > turnOf(wanted));
    this.#waiting.splice(place < 0 ? this.#waiting.length : place, 0, wanted);
  }

  #dropLate(nowMs: Millis): void {
    const isLate = ({ atMs }: WantedCapture) => atMs !== undefined && nowMs - atMs > LATE_MS;
    const late = this.#waiting.filter(isLate);
    this.#waiting = this.#waiting.filter((wanted) => !isLate(wanted));
    for (const wanted of late) {
      this.#refuse(
        wanted,
        `${wanted.reason}, but another capture was running until ${LATE_MS / 1000} s after it`,
      );
    }
  }

  /** Ends the running capture and drops those that wait. */
  async close(): Promise<void> {
    for (const { onDone } of this.#waiting) {
      onDone?.({ why: "watch ended" });
    }
    this.#waiting = [];
    this.#stop.abort();
    await this.#working;
  }

  async #make(wanted: WantedCapture, maxPauseMs: Millis): Promise<void> {
    const { program, reason, captures, recording, lastMoment, isGrowing = false } = wanted;
    const { identity, pid, command } = program.root;
    const { service, version, env } = identity;
    const begun: ArtifactJson = {
      schema: "tidemark.artifact/1",
      ...{ service, version, env, pid, reason, lastMoment },
      host: hostName(),
      command: [...command],
      timeMs: Date.now(),
      files: [],
      problems: ["watch ended before this capture was complete"],
    };
    const refuse = (why: string) => this.#refuse(wanted, `${reason}: ${why}`);
    const kept: ArtifactFileJson[] = [];
    let path = "";
    try {
      path = this.#artifacts.begin(begun);
      if (lastMoment && recording !== null) {
        const name = await this.#artifacts.keepRecording(path, recording, isGrowing);
        kept.push({ name, capture: "recording", pid: 0 });
      }
      const answer = await this.#ask(requestOf(wanted, path, maxPauseMs));
      const files = [...kept, ...answer.files];
      const about: ArtifactJson = { ...begun, files, problems: answer.problems };
      this.#artifacts.written(path, about);
      this.#creditMs -= answer.cpuMs;
      if (about.files.length === 0) {
        refuse(about.problems.join("; ") || `there is nothing to ${captures.join(", ")}`);
        return;
      }
      wanted.onDone?.({ path });
      if (!this.#stop.signal.aborted) {
        const { problems, verdict } = answer;
        this.#onEvent({ kind: "captured", program, reason, path, verdict, files, problems });
      }
    } catch (error) {
      const why = reasonOf(error).message; // the disk is full, or the folder cannot be written
      this.#leave(path, { ...begun, files: kept, problems: [why] });
      refuse(why);
    }
  }

  /** A capture that failed halfway: what it has stays, within the bounds of artifacts. `path`: "" if it has no folder. */
  #leave(path: string, about: ArtifactJson): void {
    try {
      if (path !== "") {
        this.#artifacts.written(path, about);
      }
    } catch {
      // Its first description is there.
    }
  }

  #refuse({ program, onDone }: WantedCapture, why: string): void {
    this.#onEvent({ kind: "not-captured", program, why });
    onDone?.({ why });
  }

  /** Never rejects; if the process was killed, nothing was captured. */
  async #ask(request: CaptureRequest): Promise<CaptureAnswer> {
    if (this.#stop.signal.aborted) {
      return { files: [], problems: ["watch ended"], verdict: null, cpuMs: 0 };
    }
    const child = fork(new URL("./capture_process.js", import.meta.url), {
      execArgv: [`--max-old-space-size=${HEAP_MIB}`],
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    const begunMs = monotonicMs();
    let answer: CaptureAnswer | null = null;
    child.once("message", (message) => {
      answer = message as CaptureAnswer;
    });
    child.on("error", () => {});
    const kill = () => child.kill("SIGKILL");
    const timer = setTimeout(kill, LONGEST_MS);
    this.#stop.signal.addEventListener("abort", kill);
    child.send(request, () => {});
    await once(child, "close").catch(() => {});
    clearTimeout(timer);
    this.#stop.signal.removeEventListener("abort", kill);
    const why = this.#stop.signal.aborted ? "watch ended" : "the capturing process was killed";
    // For a process that was killed, only the elapsed time is known.
    return answer ?? { files: [], problems: [why], verdict: null, cpuMs: monotonicMs() - begunMs };
  }
}

/** Whether it has loaded CUDA, or torch with CUDA. */
export function usesDevice(pid: Pid): boolean {
  return isMappingNamed(pid, DEVICE_LIBRARIES);
}

function requestOf(
  { program, captures, recording, lastMoment }: WantedCapture,
  folder: string,
  maxPauseMs: Millis,
): CaptureRequest {
  const pids = program.processes.map(({ pid }) => pid);
  const bytes = new Map(pids.map((pid) => [pid, rssOfProcess(pid)]));
  const size = (pid: number) => bytes.get(pid) ?? 0;
  const living = lastMoment ? [] : pids.filter((pid) => size(pid) > 0);
  return {
    captures,
    folder,
    maxPauseMs,
    recording,
    pids: living.sort((a, b) => size(b) - size(a)),
    devicePids: captures.includes("gpu") ? living.filter(usesDevice) : [],
  };
}
