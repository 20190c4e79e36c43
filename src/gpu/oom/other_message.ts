/**
 * Texts of frameworks beside PyTorch, JAX and TensorFlow. Each says little: an event with the figures that
 * are there, and the name of who wrote it.
 *
 *   llama.cpp     allocating N MiB on device D: cudaMalloc failed: out of memory
 *                 failed to allocate CUDA0 buffer of size N
 *   ONNX Runtime  BFCArena::AllocateRawInternal ... Failed to allocate memory for requested buffer of size N
 *   TensorRT      Requested amount of GPU memory (N bytes) could not be allocated
 *                 Error Code 2: OutOfMemory (Requested size was N bytes.)
 *   Paddle        Out of memory error on GPU D. Cannot allocate R GB memory on GPU D, A GB memory has been
 *                 allocated and available memory is only F GB.
 *   CuPy          Out of memory allocating N bytes (allocated so far: A bytes).
 *                 out of memory to allocate N bytes (total A bytes)
 *   CUDA.jl       Out of GPU memory trying to allocate R / Effective GPU memory usage: 91.54% (U/T)
 *   RMM           RMM failure at: ... pool_memory_resource.hpp:N: Maximum pool size exceeded
 *   SGLang, TGI   Not enough memory. Please try to increase --mem-fraction-static
 *                 Not enough memory to handle N prefill tokens
 *   PyTorch       DefaultCPUAllocator: can't allocate memory: you tried to allocate N bytes   (the host's)
 */
import type { Bytes } from "../../model/units.js";
import { bytesOf, SIZE, squeeze } from "./message_sizes.js";
import { type OomReading, reading } from "./oom_reading.js";
import { type OomFigures, type OomVerdict, sizeText } from "./oom_verdict.js";

interface OtherText {
  readonly library: string;
  readonly start: RegExp;
  /** Whether the start alone is an event: its figures are not always there. */
  readonly bare?: true;
  /** Matched without any white space. */
  readonly text: RegExp;
  readonly read: (groups: readonly (string | undefined)[]) => {
    readonly figures: Partial<OomFigures>;
    readonly device?: number;
    /** Where the figures alone do not tell. */
    readonly verdict?: OomVerdict;
    readonly host?: boolean;
  };
}

const TEXTS: readonly OtherText[] = [
  {
    library: "llama.cpp",
    start: /allocating [\d.]{1,16} MiB on device \d{1,4}: cudaMalloc failed/,
    text: new RegExp(`allocating${SIZE}ondevice(\\d{1,4}):`),
    read: ([figure, unit, device]) => ({
      figures: { requestedBytes: bytesOf(figure!, unit!) },
      device: Number(device),
    }),
  },
  {
    library: "llama.cpp",
    start: /failed to allocate \w{2,12} buffer of size \d/,
    text: /failedtoallocate[A-Za-z]{2,10}(\d{0,3})bufferofsize(\d{1,20})/,
    read: ([device, bytes]) => ({
      figures: { requestedBytes: Number(bytes) },
      ...(device === "" ? {} : { device: Number(device) }),
    }),
  },
  {
    library: "ONNX Runtime",
    start: /Failed to allocate memory for requested buffer of size/,
    text: /Failedtoallocatememoryforrequestedbufferofsize(\d{1,20})/,
    read: ([bytes]) => ({ figures: { requestedBytes: Number(bytes) } }),
  },
  {
    library: "TensorRT",
    bare: true,
    start:
      /Requested amount of GPU memory \(|Error Code \d{1,2}: OutOfMemory|Error Code 1: Cuda Runtime \(out of memory\)/,
    text: /(?:RequestedamountofGPUmemory\(|OutOfMemory\(Requestedsizewas)(\d{1,20})bytes/,
    read: ([bytes]) => ({ figures: { requestedBytes: Number(bytes) } }),
  },
  {
    library: "Paddle",
    bare: true,
    start: /Out of memory error on GPU \d/,
    text: new RegExp(
      `OutofmemoryerroronGPU(\\d{1,4})\\.Cannotallocate${SIZE}memoryonGPU\\d{1,4},(?:${SIZE}memoryhasbeenallocatedand)?availablememoryisonly${SIZE}`,
    ),
    read: ([device, request, requestUnit, held, heldUnit, free, freeUnit]) => ({
      device: Number(device),
      figures: {
        requestedBytes: bytesOf(request!, requestUnit!),
        allocatedBytes: held === undefined ? null : bytesOf(held, heldUnit!),
        freeBytes: bytesOf(free!, freeUnit!),
      },
    }),
  },
  {
    library: "CuPy",
    start:
      /Out of memory allocating [\d,]{1,26} bytes \(allocated|out of memory to allocate \d{1,20} bytes/,
    text: /(?:allocating|toallocate)([\d,]{1,26})bytes\((?:allocatedsofar:|total)([\d,]{1,26})bytes/,
    read: ([request, held]) => ({
      figures: { requestedBytes: counted(request), allocatedBytes: counted(held) },
    }),
  },
  {
    library: "CUDA.jl",
    start: /Out of GPU memory trying to allocate/,
    text: new RegExp(
      `OutofGPUmemorytryingtoallocate${SIZE}(?:EffectiveGPUmemoryusage:[\\d.]{1,8}%\\(${SIZE}/${SIZE}\\))?`,
    ),
    read: ([request, requestUnit, used, usedUnit, total, totalUnit]) => ({
      figures: {
        requestedBytes: bytesOf(request!, requestUnit!),
        ...(total === undefined
          ? {}
          : {
              totalBytes: bytesOf(total, totalUnit!),
              freeBytes: Math.max(0, bytesOf(total, totalUnit!) - bytesOf(used!, usedUnit!)),
            }),
      },
    }),
  },
  {
    library: "RMM",
    start: /RMM failure at:? ?\S{1,200} Maximum pool size exceeded/,
    text: /Maximumpoolsizeexceeded/,
    read: () => ({
      figures: {},
      verdict: {
        kind: "genuine",
        because: "RMM's pool has reached the size that the program set for it",
        advice: ["TM-A115", "TM-A129"],
      },
    }),
  },
  {
    library: "MIOpen",
    start: /Memory not available to allocate buffer: \d/,
    text: /availabletoallocatebuffer:(\d{1,20})/,
    read: ([bytes]) => ({ figures: { requestedBytes: Number(bytes) } }),
  },
  {
    library: "SGLang",
    start:
      /Not enough memory\. Please try to increase --mem-fraction-static|runs out of memory\. Please set a smaller number for|(?:Prefill|Decode) out of memory\. Try to lower your batch size/,
    text: /mem-fraction-static|runsoutofmemory|(?:Prefill|Decode)outofmemory/,
    read: () => ({
      figures: {},
      verdict: serving("its pool of keys and values is used up, or has no room beside the weights"),
    }),
  },
  {
    library: "TGI",
    start: /Not enough memory to handle \d{1,9} prefill tokens/,
    text: /tohandle(\d{1,9})prefilltokens/,
    read: ([tokens]) => ({
      figures: {},
      verdict: serving(
        `a first pass of ${tokens} tokens does not fit beside the weights (--max-batch-prefill-tokens)`,
      ),
    }),
  },
  {
    library: "",
    start: /DefaultCPUAllocator: (?:can't allocate|not enough) memory/,
    text: /youtriedtoallocate(\d{1,20})bytes/,
    read: ([bytes]) => ({
      host: true,
      figures: { requestedBytes: Number(bytes) },
      verdict: {
        kind: "genuine",
        because: `PyTorch found no ${sizeText(Number(bytes))} of the host's memory for a tensor on the CPU`,
        advice: ["TM-A132"],
      },
    }),
  },
];

export const OTHER_START = new RegExp(TEXTS.map(({ start }) => start.source).join("|"));

/** @param text the message and up to a few lines behind it; null where it holds none */
export function parseOtherMessage(text: string): OomReading | null {
  const known = rowOf(text);
  if (known === undefined) return null;
  const match = known.text.exec(squeeze(text));
  if (match === null && known.bare === undefined) return null;
  const { figures, device, verdict, host } =
    match === null ? { figures: {} as Partial<OomFigures> } : readOf(known, match);
  return reading(verdict ?? judge(figures), figures, {
    framework: known.library === "" ? "pytorch" : "other",
    library: known.library,
    device: device ?? null,
    memory: host === true ? "host" : "device",
  });
}

/** llama.cpp and TensorRT say one failure in several lines: of one request, or of none. */
export function continuesOther(message: string, text: string): boolean {
  const [before, next] = [rowOf(message), rowOf(text)];
  if (before === undefined || next === undefined || before.library !== next.library) return false;
  const [one, other] = [parseOtherMessage(message), parseOtherMessage(text)].map(
    (found) => found?.figures.requestedBytes ?? null,
  ) as [Bytes | null, Bytes | null];
  const differs = one !== null && other !== null && Math.abs(one - other) > 0.01 * one;
  return !differs && (before !== next || one === null || other === null);
}

function rowOf(text: string): OtherText | undefined {
  return TEXTS.find(({ start }) => start.test(text));
}

/** One shape for all rows: what a row does not say is undefined. */
function readOf(known: OtherText, match: RegExpExecArray) {
  const { device, verdict, host, figures } = known.read(match.slice(1));
  return { figures, device, verdict, host };
}

function counted(figure: string | undefined): Bytes {
  return Number((figure ?? "").replaceAll(",", ""));
}

/** No device is as large as this: the size was computed wrong. */
const NO_DEVICE = 2 ** 44;

function judge({
  requestedBytes: request = null,
  freeBytes: free = null,
}: Partial<OomFigures>): OomVerdict {
  if (request !== null && request >= NO_DEVICE) {
    return {
      kind: "genuine",
      because: `${sizeText(request)} was asked for: more than any device has, a size that was computed wrong`,
      advice: [],
    };
  }
  if (request !== null && free !== null && free < request) {
    return {
      kind: "genuine",
      because: `${sizeText(request)} was asked for, and ${sizeText(free)} is free`,
      advice: ["TM-A108", "TM-A129"],
    };
  }
  return {
    kind: "unknown",
    because:
      request === null
        ? "the message has no figures"
        : `${sizeText(request)} was asked for; the message does not say what the device has, or who holds it`,
    advice: ["TM-A108", "TM-A129"],
  };
}

function serving(why: string): OomVerdict {
  return {
    kind: "genuine",
    because: `the server's share of the device is too small: ${why}`,
    advice: ["TM-A120", "TM-A121"],
  };
}
