/**
 * Captures that the server asks for at one moment, so that the ranks of a job can be compared across hosts.
 *
 *     request, half a minute before ──timer──> the programs of the service that run then ──> one capture of all of them
 */
import type { Millis } from "../../model/base/units.js";
import { LATE_MS, usesDevice, type WantedCapture } from "../captures/captures.js";
import type { Chosen, Program } from "../policy/programs.js";
import type { OpenRequest } from "./server_requests.js";

interface TimedCapturesOptions {
  readonly clock: () => Millis;
  /** The programs that run now, as their policy has them. */
  readonly programs: () => readonly { readonly program: Program; readonly rule: Chosen }[];
  readonly capture: (wanted: WantedCapture) => void;
  readonly answer: (request: OpenRequest, programs: number, why: string) => void;
}

export class TimedCaptures {
  readonly #options: TimedCapturesOptions;
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(options: TimedCapturesOptions) {
    this.#options = options;
  }

  add(request: OpenRequest): void {
    const leftMs = (request.captures?.atMs ?? 0) - this.#options.clock();
    if (leftMs < -LATE_MS) {
      this.#answer(request, 0, "the request arrived after its moment");
      return;
    }
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        this.#capture(request);
      },
      Math.max(0, leftMs),
    );
    timer.unref();
    this.#timers.add(timer);
  }

  close(): void {
    for (const timer of this.#timers) {
      clearTimeout(timer);
    }
  }

  #capture(request: OpenRequest): void {
    const ofService = this.#ofService(request);
    const allowed = ofService.filter(({ rule }) => rule.remote && rule.watch !== "never");
    const programs = allowed
      .map(({ program }) => program)
      .filter(({ processes }) => processes.some(({ pid }) => usesDevice(pid)));
    const [first] = programs;
    const isForbidden = allowed.length < ofService.length;
    const forbidden = isForbidden ? "the host's policy says remote: false or watch: never" : "";
    if (first === undefined) {
      this.#answer(request, 0, forbidden || "no process of it uses a device");
      return;
    }
    this.#options.capture({
      program: { ...first, processes: programs.flatMap(({ processes }) => processes) },
      reason: `the server asked for the memory of all ranks of ${request.service} at this moment`,
      captures: request.captures?.what ?? [],
      ...{ recording: null, lastMoment: false, atMs: request.captures?.atMs ?? 0 },
      onDone: (outcome) =>
        "path" in outcome
          ? this.#options.answer(request, programs.length, forbidden)
          : this.#options.answer(request, 0, outcome.why),
    });
  }

  #ofService({ service }: OpenRequest) {
    return this.#options
      .programs()
      .filter(({ program }) => program.root.identity.service === service);
  }

  /** A host without the service stays silent. */
  #answer(request: OpenRequest, programs: number, why: string): void {
    if (this.#ofService(request).length > 0) {
      this.#options.answer(request, programs, why);
    }
  }
}
