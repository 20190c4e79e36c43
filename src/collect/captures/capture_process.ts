/**
 * The process that makes captures: one for each fired trigger, so that a huge or hostile heap cannot use up the
 * collector's memory or crash it. It runs at a low priority, is killed first if memory runs out, and exits after the
 * captures of its request.
 */
import { copyFileSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { join } from "node:path";
import {
  diagnoseRecording,
  heapDocument,
  ledgerDocument,
  stacksDocument,
} from "../../inspect/index.js";
import { readRank } from "../../linux/index.js";
import { processCpu } from "../../linux/this_process/clock.js";
import { raiseOomScore } from "../../linux/this_process/out_of_memory.js";
import type { Millis, Pid } from "../../model/base/units.js";
import type { ArtifactFileJson, Capture } from "../../model/documents/artifact_document.js";
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { openRecording, readDeviceSnapshot } from "../../record/index.js";
import { copyFlightRecorder } from "./flight_recorder.js";

export interface CaptureRequest {
  readonly captures: readonly Capture[];
  /** Where the files go; it exists. */
  readonly folder: string;
  readonly maxPauseMs: Millis;
  /** The program's recording, which may still grow; null if it has none. */
  readonly recording: string | null;
  /** Live processes, largest first. */
  readonly pids: readonly Pid[];
  /** The processes that use a device. */
  readonly devicePids: readonly Pid[];
}

export interface CaptureAnswer {
  readonly files: ArtifactFileJson[];
  readonly problems: string[];
  readonly verdict: DiagnosisJson["verdict"] | null;
  readonly cpuMs: Millis;
}

/** How long a program may take to run Python code, for a snapshot of a device. */
const WAIT_MS: Millis = 20_000;
/** Limit on processes, because those of a large pool are all alike. */
const MOST_LEDGERS = 8;
const PRIORITY = 10;
/** See heap_errors.ts. */
const PAUSE_TOO_LONG = "TM-E050";

if (process.send !== undefined) {
  setPriority(PRIORITY);
  raiseOomScore();
  // The collector has exited, so nothing would describe the captures.
  process.once("disconnect", () => process.exit());
  process.once("message", (request) => {
    void new CaptureWork(request as CaptureRequest).run().then((answer) => {
      process.send?.(answer, () => process.exit());
    });
  });
}

class CaptureWork {
  readonly #request: CaptureRequest;
  readonly #files: ArtifactFileJson[] = [];
  readonly #problems: string[] = [];
  #verdict: DiagnosisJson["verdict"] | null = null;

  constructor(request: CaptureRequest) {
    this.#request = request;
  }

  async run(): Promise<CaptureAnswer> {
    const cpu = processCpu();
    const { captures, pids, devicePids } = this.#request;
    const [largest] = pids;
    for (const capture of captures) {
      switch (capture) {
        case "diagnose":
          await this.#tryTo(capture, () => this.#diagnose());
          break;
        case "gpu":
          // All at the same moment, so that the ranks can be compared.
          await Promise.all(
            devicePids.map((pid) => this.#tryTo(capture, () => this.#snapshotDevice(pid))),
          );
          break;
        case "flight_recorder":
          for (const pid of pids) {
            await this.#tryTo(capture, () => this.#copyDump(pid));
          }
          break;
        case "ledger":
          for (const pid of pids.slice(0, MOST_LEDGERS)) {
            await this.#tryTo(capture, async () => {
              this.#write(capture, "ledger", pid, ledgerDocument(pid, "full", false));
            });
          }
          break;
        default:
          if (largest !== undefined) {
            await this.#tryTo(capture, () => this.#inspect(capture, largest));
          }
      }
    }
    return {
      files: this.#files,
      problems: this.#problems,
      verdict: this.#verdict,
      cpuMs: cpu(),
    };
  }

  async #tryTo(capture: Capture, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#problems.push(`${capture}: ${this.#whyOf(error)}`);
    }
  }

  #whyOf(error: unknown): string {
    if (!(error instanceof TidemarkError)) {
      return reasonOf(error).message;
    }
    const most = Math.round(this.#request.maxPauseMs);
    return error.id === PAUSE_TOO_LONG
      ? `${error.what}, and max_pause is ${most} ms: raise artifacts.max_pause in the policy`
      : error.what;
  }

  async #diagnose(): Promise<void> {
    const { recording } = this.#request;
    if (recording !== null) {
      const diagnosis = await diagnoseRecording(openRecording(recording), async () => {});
      this.#verdict = diagnosis.verdict;
      this.#write("diagnose", "diagnosis", 0, diagnosis);
    }
  }

  async #inspect(capture: "census" | "snapshot" | "stacks", pid: Pid): Promise<void> {
    if (capture === "stacks") {
      this.#write(capture, capture, pid, await stacksDocument(pid, true));
      return;
    }
    const { document } = await heapDocument({
      target: String(pid),
      exact: false,
      graph: capture === "snapshot",
      maxPauseMs: this.#request.maxPauseMs,
      onPlan() {},
      wantsValue: false,
      wantsTree: false,
      draw: null,
    });
    this.#write(capture, capture === "snapshot" ? "heap" : capture, pid, document);
  }

  async #snapshotDevice(pid: Pid): Promise<void> {
    const name = `gpu-${pid}.pickle`;
    const { answer, refused } = await readDeviceSnapshot(pid, { waitMs: WAIT_MS }, async (path) => {
      copyFileSync(path, join(this.#request.folder, name));
      return name;
    });
    if (answer === null) {
      this.#problems.push(`gpu: process ${pid}: ${refused || "torch has not used a device yet"}`);
    } else {
      this.#files.push({ name, capture: "gpu", pid });
    }
  }

  /** A process without a rank is a launcher; that it has no dump is no problem of the capture. */
  async #copyDump(pid: Pid): Promise<void> {
    if (readRank(pid) === null) {
      return;
    }
    const copied = copyFlightRecorder(pid, this.#request.folder);
    if ("why" in copied) {
      this.#problems.push(`flight_recorder: process ${pid}: ${copied.why}`);
    } else {
      this.#files.push({ name: copied.name, capture: "flight_recorder", pid });
    }
  }

  /** `pid` 0: the whole program. */
  #write(capture: Capture, start: string, pid: Pid, document: object): void {
    const name = pid === 0 ? `${start}.json` : `${start}-${pid}.json`;
    writeFileSync(join(this.#request.folder, name), `${JSON.stringify(document)}\n`);
    this.#files.push({ name, capture, pid });
  }
}
