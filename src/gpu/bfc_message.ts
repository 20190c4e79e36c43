/**
 * Out-of-memory texts of JAX and TensorFlow, whose allocator (BFC) dumps its state into the log:
 *
 *   Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.72GiB (rounded to 3994418944)
 *   ... thousands of chunks ...
 *   Stats:
 *   Limit: 68719476736
 *   InUse: 68719476736
 *   LargestFreeBlock: 0
 *   RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3994418944 bytes.
 *   OOM when allocating tensor with shape[25088,4096] and type float on /job:.../device:GPU:0
 */
import type { Bytes } from "../model/units.js";
import { bytesOf } from "./torch_message.js";

export interface BfcState {
  framework: "jax" | "tensorflow";
  line: number;
  device: number | null;
  request: Bytes | null;
  limit: Bytes | null;
  inUse: Bytes | null;
  largestFree: Bytes | null;
}

const ALLOCATOR =
  /Allocator \((\w+)\) ran out of memory trying to allocate ([\d.]+) ?([KMGT]?i?B)(?:ytes)?(?: \(rounded to (\d+)\))?/;
const EXHAUSTED =
  /RESOURCE_EXHAUSTED|ResourceExhaustedError|Resource exhausted:|XlaRuntimeError.*[Oo]ut of memory/;
const JAX_REQUEST =
  /[Oo]ut of memory (?:while trying to allocate|allocating|trying to allocate) ([\d.]+) ?(bytes|[KMGT]iB)/;
const JAX_DEVICE_REQUEST =
  /Failed to allocate request for [\d.]+[KMGT]?i?B \((\d+)B\) on device ordinal (\d+)/;
const TENSOR =
  /OOM when allocating tensor with shape\[([\d,\s]*)\](?: and type (\w+))?(?: on \S*GPU:(\d+))?/;
const STATISTIC =
  /^\W*(?:\S+ bfc_allocator\.cc:\d+\] )?(Limit|InUse|LargestFreeBlock): +(-?\d+)\s*$/;
const DTYPE_BYTES: Readonly<Record<string, number>> = {
  float: 4,
  double: 8,
  half: 2,
  bfloat16: 2,
  int8: 1,
  uint8: 1,
  bool: 1,
  int16: 2,
  int32: 4,
  int64: 8,
  complex64: 8,
};

/** Whether a line says something to the reader below: most of a dump does not. */
export function isBfcLine(text: string): boolean {
  return STATISTIC.test(text) || ALLOCATOR.test(text) || EXHAUSTED.test(text) || TENSOR.test(text);
}

/** Takes the lines of one writer, and hands out an event when the dump is over. */
export class BfcReader {
  #open: BfcState | undefined;

  /** @returns the event before, when this line begins another; null where there is none */
  take(line: number, text: string): BfcState | null {
    const allocator = ALLOCATOR.exec(text);
    if (allocator !== null) {
      const before = this.flush();
      const device = /GPU_(\d+)/.exec(allocator[1]!)?.[1];
      this.#open = stateAt(line);
      this.#open.device = device === undefined ? null : Number(device);
      this.#open.request =
        allocator[4] === undefined ? bytesOf(allocator[2]!, allocator[3]!) : Number(allocator[4]);
      return before;
    }
    const statistic = STATISTIC.exec(text);
    if (statistic !== null) {
      this.#takeStatistic(statistic[1]!, Number(statistic[2]));
      return null;
    }
    return EXHAUSTED.test(text) || TENSOR.test(text) ? this.#takeError(line, text) : null;
  }

  flush(): BfcState | null {
    const state = this.#open ?? null;
    this.#open = undefined;
    return state;
  }

  #takeStatistic(name: string, value: number): void {
    if (this.#open === undefined) return;
    if (name === "Limit") this.#open.limit = value;
    else if (name === "InUse") this.#open.inUse = value;
    else this.#open.largestFree = value;
  }

  /** The exception's own text: it ends a dump, or stands alone. */
  #takeError(line: number, text: string): BfcState | null {
    const request = requestIn(text);
    // A traceback repeats the text of its exception, and names errors that are not about memory.
    if (request.bytes === null && this.#open === undefined) return null;
    const ends = this.#open !== undefined && (request.bytes === null || this.#fits(request.bytes));
    const before = ends ? null : this.flush();
    this.#open ??= stateAt(line);
    this.#open.framework = request.tensor
      ? "tensorflow"
      : /jax|xla/i.test(text)
        ? "jax"
        : this.#open.framework;
    this.#open.request ??= request.bytes;
    this.#open.device ??= request.device;
    return before;
  }

  /** The dump rounds up to 256 bytes. */
  #fits(bytes: Bytes): boolean {
    const known = this.#open?.request ?? null;
    return known === null || Math.abs(known - bytes) <= Math.max(4096, known * 0.01);
  }
}

function stateAt(line: number): BfcState {
  return {
    framework: "jax",
    line,
    device: null,
    request: null,
    limit: null,
    inUse: null,
    largestFree: null,
  };
}

function requestIn(text: string): { bytes: Bytes | null; device: number | null; tensor: boolean } {
  const tensor = TENSOR.exec(text);
  if (tensor !== null) {
    const elements = tensor[1]!
      .split(",")
      .reduce((product, side) => product * Number(side || 1), 1);
    const bytes = elements * (DTYPE_BYTES[tensor[2] ?? "float"] ?? 4);
    return { bytes, device: tensor[3] === undefined ? null : Number(tensor[3]), tensor: true };
  }
  const onDevice = JAX_DEVICE_REQUEST.exec(text);
  if (onDevice !== null) {
    return { bytes: Number(onDevice[1]), device: Number(onDevice[2]), tensor: false };
  }
  const plain = JAX_REQUEST.exec(text);
  return {
    bytes: plain === null ? null : bytesOf(plain[1]!, plain[2]!),
    device: null,
    tensor: false,
  };
}
