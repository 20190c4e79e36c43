/**
 * Out-of-memory messages of JAX and TensorFlow, whose allocator (BFC) dumps its state into the log:
 *
 *   failed to allocate 8.41G (9029127168 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY       (tries again, smaller)
 *   Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.72GiB (rounded to 3994418944)
 *   ... thousands of chunks ...
 *   Stats:
 *   Limit: 68719476736
 *   InUse: 68719476736
 *   LargestFreeBlock: 0
 *   RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3994418944 bytes.
 *   BufferAssignment stats: ... total allocation: 14.44GiB                  (XLA: what the program needs in all)
 *   OOM when allocating tensor with shape[25088,4096] and type float on /job:.../device:GPU:0 by allocator GPU_0_bfc
 *
 * While XLA tries kernels, many allocation failures are harmless and marked as such on the same or next line
 * ("not a failure", "with freed_by_count="); they are not events. cuda_host_bfc and gpu_host_bfc are pools of
 * pinned host memory.
 */

import type { Bytes } from "../../../model/base/units.js";
import type { OomEventJson } from "../../../model/documents/gpu/gpu_document.js";
import { type BfcRequest, EXHAUSTED, requestIn, TENSOR } from "./bfc_request.js";
import { bytesOf, XLA_SIZE } from "./message_sizes.js";
import { sourceOf } from "./message_source.js";

export interface BfcState {
  framework: "jax" | "tensorflow";
  memory: OomEventJson["memory"];
  /** The texts it was made from; later texts of the same failure add details. */
  source: "driver" | "exception" | "dump";
  line: number;
  device: number | null;
  request: Bytes | null;
  limit: Bytes | null;
  inUse: Bytes | null;
  largestFree: Bytes | null;
  /** Total memory that the compiled program needs. */
  program: Bytes | null;
}

const DRIVER = new RegExp(
  `failed to alloc(?:ate)? (?:${XLA_SIZE} \\((\\d{1,20})(?: bytes|B)\\)|(\\d{1,20}) bytes) (from device|on host): (?:CUDA_ERROR_OUT_OF_MEMORY|HIP_ERROR_OutOfMemory|hipErrorOutOfMemory)`,
);
const ALLOCATOR =
  /Allocator \((\w{1,64})\) ran out of memory trying to allocate (\d{1,20}(?:\.\d{1,9})?) ?([KMGT]?i?B)(?:ytes)?(?: \(rounded to (\d{1,20})\))?/;
const NO_FAILURE = /with freed_by_count=|caller indicates that this is not a failure/;
const STATISTIC = /(?:^|[\s|>*\]])(Limit|InUse|LargestFreeBlock): {1,40}(-?\d{1,19})\s{0,8}$/;
const PROGRAM = /(?:^|\s)total allocation: {1,24}(\d{1,12}(?:\.\d{1,9})?)([KMGT]?i?B)/;
/** Every line that this reader uses contains one of these. */
const WORDS =
  /Limit:|InUse:|FreeBlock:|ran out of memory|EXHAUSTED|xhausted|XlaRuntimeError|OOM when|failed to alloc|total allocation:|Dst tensor|for new constant|not a failure/;
const LONGEST = 2000;
/** Thousands of lines may separate the driver's refusal from the end of the dump. */
const NEAR_LINES = 20_000;
/** Number of lines in which a wrapped exception is searched. */
const WRAPPED_LINES = 3;
/** Statistics belong to an exception at most this many lines later if the dump's first line was lost or had no name. */
const STATISTICS_LINES = 24;

/** Whether the reader below uses a line; most lines of a dump are irrelevant. */
export function isBfcLine(text: string): boolean {
  if (!WORDS.test(text)) {
    return false;
  }
  const part = text.slice(0, LONGEST);
  const all = [STATISTIC, ALLOCATOR, EXHAUSTED, TENSOR, DRIVER, PROGRAM, NO_FAILURE];
  return all.some((one) => one.test(part));
}

/** A driver's line contains a name that other libraries also print. */
export function isDriverLine(text: string): boolean {
  return text.includes("failed to alloc") && DRIVER.test(text.slice(0, LONGEST));
}

/** Consumes the lines of one writer and returns an event when the dump is complete. */
export class BfcReader {
  #open: BfcState | undefined;
  /** Statistics of a dump without a first line. */
  #loose: Pick<BfcState, "line" | "limit" | "inUse" | "largestFree"> | undefined;
  /** An exception whose request is in the next line. */
  #wrapped: { line: number; text: string; left: number } | undefined;

  /** Whether the next line is needed, whatever it contains. */
  get waits(): boolean {
    return this.#wrapped !== undefined;
  }

  /** @returns the previous event if this line begins another; null if there is none */
  take(line: number, whole: string): BfcState | null {
    const text = whole.slice(0, LONGEST);
    const joined = this.#joined(text);
    if (joined !== null) {
      return this.#takeError(joined.line, joined.text, joined.request);
    }
    const driver = DRIVER.exec(text);
    if (driver !== null) {
      return this.#takeDriver(line, text, driver);
    }
    const allocator = ALLOCATOR.exec(text);
    if (allocator !== null) {
      return NO_FAILURE.test(text) ? null : this.#takeAllocator(line, text, allocator);
    }
    const statistic = STATISTIC.exec(text);
    if (statistic !== null) {
      const [, name = "", value] = statistic;
      this.#takeStatistic(line, name, Number(value));
      return null;
    }
    if (NO_FAILURE.test(text)) {
      if (this.#open?.source === "dump" && line - this.#open.line <= 1) {
        this.#open = undefined;
      }
      return null;
    }
    const program = PROGRAM.exec(text);
    if (program !== null) {
      if (this.#open !== undefined) {
        const [, figure = "", unit = ""] = program;
        this.#open.program = bytesOf(figure, unit);
      }
      return null;
    }
    if (!EXHAUSTED.test(text) && !TENSOR.test(text)) {
      return null;
    }
    const request = requestIn(text);
    if (request === null) {
      this.#wrapped = { line, text, left: WRAPPED_LINES };
      return null;
    }
    return this.#takeError(line, text, request);
  }

  flush(): BfcState | null {
    const state = this.#open ?? null;
    this.#open = undefined;
    return state;
  }

  /** The previous exception joined with the following lines, once the request is known from both. */
  #joined(text: string): { line: number; text: string; request: BfcRequest } | null {
    const wrapped = this.#wrapped;
    if (wrapped === undefined) {
      return null;
    }
    wrapped.text += `\n${text}`;
    wrapped.left -= 1;
    const request = requestIn(wrapped.text);
    const own = request !== null && requestIn(text) === null;
    if (wrapped.left === 0 || request !== null) {
      this.#wrapped = undefined;
    }
    return own ? { line: wrapped.line, text: wrapped.text, request } : null;
  }

  #takeDriver(line: number, text: string, driver: RegExpExecArray): BfcState | null {
    const open = this.#open;
    const request = Number(driver[3] ?? driver[4]);
    // It retries with nine tenths of the size repeatedly; the first attempt is the event.
    if (open?.source === "driver" && request <= (open.request ?? 0)) {
      return null;
    }
    const before = this.flush();
    // Alone it is from TensorFlow; JAX reports next what failed.
    const framework = sourceOf(text).framework === "jax" ? "jax" : "tensorflow";
    this.#open = stateAt(line, "driver", framework);
    this.#open.request = request;
    if (driver[5] === "on host") {
      this.#open.memory = "host";
    }
    return before;
  }

  #takeAllocator(line: number, text: string, allocator: RegExpExecArray): BfcState | null {
    const [, name = "", figure = "", unit = "", rounded] = allocator;
    this.#loose = undefined;
    const request = rounded === undefined ? bytesOf(figure, unit) : Number(rounded);
    const same =
      this.#open !== undefined && this.#open.source === "exception" && this.#fits(request);
    const before = same ? null : this.#before(line);
    const open = this.#open ?? stateAt(line, "dump", frameworkOf(text));
    this.#open = open;
    open.source = "dump";
    const device = /GPU_(\d{1,5})/.exec(name)?.[1];
    open.device ??= device === undefined ? null : Number(device);
    if (!same) {
      open.request = request;
    }
    open.memory = /host/.test(name) ? "host" : "pool";
    return before;
  }

  #takeStatistic(line: number, name: string, value: number): void {
    if (this.#open === undefined || this.#open.source === "driver") {
      this.#loose ??= stateAt(line, "dump", "jax");
    }
    const figures = this.#loose ?? this.#open;
    if (figures === undefined) {
      return;
    }
    if (name === "Limit") {
      figures.limit = value;
    } else if (name === "InUse") {
      figures.inUse = value;
    } else {
      figures.largestFree = value;
    }
  }

  /** The exception's own text, which ends a dump or occurs alone. */
  #takeError(line: number, text: string, request: BfcRequest): BfcState | null {
    const ends = this.#open !== undefined && (request.bytes === null || this.#fits(request.bytes));
    const before = ends ? null : this.#before(line);
    const open = this.#open ?? stateAt(line, "exception", frameworkOf(text));
    this.#open = open;
    if (open.source === "driver") {
      open.source = "exception";
    }
    this.#takeLoose(open, line);
    if (request.tensor) {
      open.framework = "tensorflow";
    } else if (sourceOf(text).framework === "jax") {
      open.framework = "jax";
    }
    open.request ??= request.bytes;
    open.device ??= request.device;
    if (request.host) {
      open.memory = "host";
    }
    return before;
  }

  #takeLoose(open: BfcState, line: number): void {
    const loose = this.#loose;
    this.#loose = undefined;
    if (loose === undefined || open.limit !== null || line - loose.line > STATISTICS_LINES) {
      return;
    }
    open.limit = loose.limit;
    open.inUse = loose.inUse;
    open.largestFree = loose.largestFree;
  }

  /** A driver's refusal is part of the failure that follows from it; otherwise it is a separate event. */
  #before(line: number): BfcState | null {
    const open = this.flush();
    return open?.source === "driver" && line - open.line <= NEAR_LINES ? null : open;
  }

  /** The dump rounds up to 256 bytes. */
  #fits(bytes: Bytes): boolean {
    const known = this.#open?.request ?? null;
    return known === null || Math.abs(known - bytes) <= Math.max(4096, known * 0.01);
  }
}

/** Both frameworks print the same text; without a path it is attributed to JAX. */
function frameworkOf(text: string): BfcState["framework"] {
  return sourceOf(text).framework === "tensorflow" ? "tensorflow" : "jax";
}

function stateAt(
  line: number,
  source: BfcState["source"],
  framework: BfcState["framework"],
): BfcState {
  return {
    framework,
    memory: "pool",
    source,
    line,
    device: null,
    request: null,
    limit: null,
    inUse: null,
    largestFree: null,
    program: null,
  };
}
