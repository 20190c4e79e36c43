/** The messages with a fixed wording, in the order in which they are tried: one row per message. */
import { formatBytesLikePyTorch } from "../../../model/base/numbers.js";
import type { Bytes } from "../../../model/base/units.js";
import { type MessageRow, readRow, words } from "./message_row.js";
import { figure, size, squeeze, whole, xlaSize } from "./message_sizes.js";
import {
  compiled,
  figuresOfAsync,
  genuine,
  judgeAsync,
  judgeCompiled,
  judgeMetal,
  judgeTpuBuffer,
  memoryOfSpace,
} from "./message_verdict.js";
import type { OomReading } from "./oom_reading.js";

const VLLM = {
  framework: "pytorch",
  library: "vLLM",
  unit: "GiB",
  start:
    /is less than desired GPU memory utilization|No available memory for the cache blocks|To serve at least one request with|KV cache is needed, which is larger|than the maximum number of tokens that can be stored in KV cache|out of memory occurred when warming up|Error in memory profiling\. Initial/,
} as const;
const METAL = { framework: "pytorch", library: "", startWraps: true } as const;
const XLA_TPU = { framework: "jax", library: "", startWraps: true } as const;
const other = (library: string) => ({ framework: "other", library }) as const;

const ROWS: readonly MessageRow[] = [
  {
    ...VLLM,
    text: words`[Ff]ree memory on device (?:\w{1,12}:${whole("device", 4)})? \(${figure("freeBytes")}/${figure("totalBytes")} GiB\) on startup is less than desired GPU memory utilization \(${figure("share")}, ${figure("requestedBytes")} GiB\)`,
    verdict: ({ size, text, bytes }) => ({
      kind: "contention",
      because: `the server needs ${size("requestedBytes")} to start (a share of ${text("share")}), but only ${size("freeBytes")} of ${size("totalBytes")} is free: ${formatBytesLikePyTorch((bytes("totalBytes") ?? 0) - (bytes("freeBytes") ?? 0))} is already in use`,
      advice: ["TM-A108", "TM-A120"],
    }),
  },
  {
    ...VLLM,
    text: words`${figure("requestedBytes")} GiB KV cache is needed, which is larger than the available KV cache memory \(${figure("freeBytes")} GiB\) (?:.*? estimated maximum model length is ${whole("longest", 12)})?`,
    verdict: ({ size, text }) =>
      genuine(
        `one request of the maximum length needs ${size("requestedBytes")} of KV cache, but the weights leave only ${size("freeBytes")}${text("longest") === "" ? "" : `; a length of ${text("longest")} would fit`}`,
        ["TM-A121", "TM-A120"],
      ),
  },
  {
    ...VLLM,
    text: words`max seq len \(${whole("longest", 12)}\) is larger than the maximum number of tokens that can be stored in KV cache \(${whole("stored", 12)}\)`,
    verdict: ({ text }) =>
      genuine(
        `the maximum length is ${text("longest")} tokens, but the KV cache holds ${text("stored")}`,
        ["TM-A121", "TM-A120"],
      ),
  },
  {
    ...VLLM,
    text: words`No available memory for the cache blocks`,
    verdict: genuine(
      "the weights and the largest forward pass use the server's whole share of the device: no memory is left for the KV cache",
      ["TM-A120", "TM-A121"],
    ),
  },
  {
    ...VLLM,
    text: words`out of memory occurred when warming up (?<part>\w{1,30}?) with ${whole("requests", 9)} dummy requests`,
    verdict: ({ text }) =>
      genuine(
        `the server ran out of memory when it warmed up its ${text("part")} with ${text("requests")} concurrent requests: the weights and the KV cache use its share`,
        ["TM-A121", "TM-A120"],
      ),
  },
  {
    ...VLLM,
    text: words`Error in memory profiling\. Initial free memory ${figure("before")} GiB, current free memory ${figure("freeBytes")} GiB`,
    verdict: ({ size }) => ({
      kind: "contention",
      because: `${size("before")} was free when the server began to measure, and ${size("freeBytes")} afterwards: another process freed memory in the meantime, which makes the measurement invalid`,
      advice: ["TM-A108", "TM-A120"],
    }),
  },
  {
    ...METAL,
    start: /Invalid buffer size: [\d.]{1,16} [KMGT]i?B/,
    text: words`Invalid buffer size: ${size("requestedBytes")}`,
    verdict: ({ size }) =>
      genuine(
        `one buffer of ${size("requestedBytes")} was requested, which is more than Metal allows`,
        ["TM-A115", "TM-A123"],
      ),
  },
  {
    ...METAL,
    start: /MPS backend out of memory/,
    text: words`MPS backend out of memory \(MPS allocated: ${size("allocatedBytes")}, other allocations: ${size("other")}, max allowed: ${size("allowedBytes")}\) (?:\. Tried to allocate ${size("requestedBytes")})?`,
    computed: ({ bytes }) => ({
      processBytes: (bytes("allocatedBytes") ?? 0) + (bytes("other") ?? 0),
    }),
    verdict: judgeMetal,
  },
  {
    framework: "pytorch",
    library: "NCCL",
    start: /Failed to CUDA (?:calloc|malloc)/,
    startWraps: true,
    text: words`Failed to CUDA (?:calloc|malloc) | NCCL WARN Cuda failure .{0,12} out of memory`,
    // The number in brackets is the device of the process, not its rank.
    elsewhere: [
      words`Failed to CUDA (?:calloc|malloc) ${whole("requestedBytes")}`,
      words`:\d{1,9}:\d{1,9} \[${whole("device", 4)}\]`,
    ],
    verdict: ({ size }) => ({
      kind: "context",
      because: `NCCL could not allocate ${size("requestedBytes") === "" ? "a buffer" : `a buffer of ${size("requestedBytes")}`}: PyTorch's allocator holds the memory of the device`,
      advice: ["TM-A109", "TM-A124"],
    }),
  },
  {
    framework: "pytorch",
    library: "cudaMallocAsync",
    // The second is ComfyUI's report, which holds only the first words of the exception.
    start:
      /Allocation on device ?\d* would exceed allowed memory|Exception Message:\W{1,4}Allocation on device/,
    elsewhere: [
      words`Allocation on device ${whole("device", 4)} would`,
      words`Currently allocated: ${size("allocatedBytes")}`,
      words`Requested: ${size("requestedBytes")}`,
      words`Device limit: ${size("totalBytes")}`,
      words`Free \(according to CUDA\): ${size("freeBytes")}`,
      words`memory fraction\): ${size("limit")}`,
    ],
    computed: figuresOfAsync,
    verdict: judgeAsync,
  },
  {
    ...XLA_TPU,
    start: /Ran out of memory in memory space/,
    text: words`memory space (?<space>[a-z]{2,8})\. Used ${xlaSize("requestedBytes")} of ${xlaSize("totalBytes")} (?:[a-z]{2,8}\. Exceeded [a-z]{2,8} capacity by ${xlaSize("over")})?`,
    memory: memoryOfSpace,
    verdict: judgeCompiled,
  },
  {
    ...XLA_TPU,
    start: /Allocation \(size=\d{1,20}\) would exceed memory/,
    text: words`Allocation \(size=${whole("requestedBytes")}\) would exceed memory \(size=${whole("totalBytes")}\) (?:.{0,400}? space=(?<space>[a-z]{2,8}))?`,
    memory: memoryOfSpace,
    verdict: judgeCompiled,
  },
  {
    ...XLA_TPU,
    start: /Hbm usage: ?[\d.]{1,12}[KMGT]/,
    text: words`Hbm usage: ${xlaSize("dense")}, SparseCore Hbm usage ${xlaSize("sparse")}, exceeding available bytes: ${xlaSize("totalBytes")}`,
    computed: ({ bytes }) => ({ requestedBytes: (bytes("dense") ?? 0) + (bytes("sparse") ?? 0) }),
    verdict: ({ bytes, size }) =>
      compiled((bytes("dense") ?? 0) + (bytes("sparse") ?? 0), size("totalBytes")),
  },
  {
    ...XLA_TPU,
    start: /Error allocating device buffer|Attempting to reserve [\d.]{1,12}[KMGT] at the bottom/,
    text: words`Attempting to (?:allocate|reserve) ${xlaSize("requestedBytes")} (?:at the bottom of memory)? \. (?:.{0,30}? There are ${xlaSize("freeBytes")} free)?`,
    elsewhere: [/\((?<chip>\d{1,4}x\d{1,4}x\d{1,4}_HBM\d)\)/],
    verdict: judgeTpuBuffer,
  },
  {
    ...other("llama.cpp"),
    start: /allocating [\d.]{1,16} MiB on device \d{1,4}: cudaMalloc failed/,
    text: words`allocating ${size("requestedBytes")} on device ${whole("device", 4)}:`,
  },
  {
    ...other("llama.cpp"),
    start: /failed to allocate \w{2,12} buffer of size \d/,
    text: words`failed to allocate [A-Za-z]{2,10}(?<device>\d{0,3}) buffer of size ${whole("requestedBytes")}`,
  },
  {
    ...other("ONNX Runtime"),
    start: /Failed to allocate memory for requested buffer of size/,
    text: words`Failed to allocate memory for requested buffer of size ${whole("requestedBytes")}`,
  },
  {
    ...other("TensorRT"),
    figuresOptional: true,
    start:
      /Requested amount of GPU memory \(|Error Code \d{1,2}: OutOfMemory|Error Code 1: Cuda Runtime \(out of memory\)/,
    text: words`(?:Requested amount of GPU memory \(|OutOfMemory \(Requested size was) ${whole("requestedBytes")} bytes`,
  },
  {
    ...other("Paddle"),
    figuresOptional: true,
    start: /Out of memory error on GPU \d/,
    text: words`Out of memory error on GPU ${whole("device", 4)}\. Cannot allocate ${size("requestedBytes")} memory on GPU \d{1,4}, (?:${size("allocatedBytes")} memory has been allocated and)? available memory is only ${size("freeBytes")}`,
  },
  {
    ...other("CuPy"),
    start:
      /Out of memory allocating [\d,]{1,26} bytes \(allocated|out of memory to allocate \d{1,20} bytes/,
    text: words`(?:allocating|to allocate) (?<requestedBytes>[\d,]{1,26}) bytes \((?:allocated so far:|total) (?<allocatedBytes>[\d,]{1,26}) bytes`,
  },
  {
    ...other("CUDA.jl"),
    start: /Out of GPU memory trying to allocate/,
    text: words`Out of GPU memory trying to allocate ${size("requestedBytes")} (?:Effective GPU memory usage: [\d.]{1,8}% \(${size("used")}/${size("totalBytes")}\))?`,
    computed: ({ bytes }) => ({
      freeBytes:
        bytes("totalBytes") === null
          ? null
          : Math.max(0, (bytes("totalBytes") ?? 0) - (bytes("used") ?? 0)),
    }),
  },
  {
    ...other("RMM"),
    start: /RMM failure at:? ?\S{1,200} Maximum pool size exceeded/,
    verdict: genuine("RMM's pool has reached the maximum size that the program set", [
      "TM-A115",
      "TM-A129",
    ]),
  },
  {
    ...other("MIOpen"),
    start: /Memory not available to allocate buffer: \d/,
    text: words`available to allocate buffer: ${whole("requestedBytes")}`,
  },
  {
    ...other("SGLang"),
    start:
      /Not enough memory\. Please try to increase --mem-fraction-static|runs out of memory\. Please set a smaller number for|(?:Prefill|Decode) out of memory\. Try to lower your batch size/,
    verdict: genuine(
      "the server's share of the device is too small: its KV cache is full, or does not fit next to the weights",
      ["TM-A120", "TM-A121"],
    ),
  },
  {
    ...other("TGI"),
    start: /Not enough memory to handle \d{1,9} prefill tokens/,
    text: words`to handle ${whole("tokens", 9)} prefill tokens`,
    verdict: ({ text }) =>
      genuine(
        `the server's share of the device is too small: a prefill of ${text("tokens")} tokens does not fit next to the weights (--max-batch-prefill-tokens)`,
        ["TM-A120", "TM-A121"],
      ),
  },
  {
    framework: "pytorch",
    library: "",
    memory: "host",
    start: /DefaultCPUAllocator: (?:can't allocate|not enough) memory/,
    text: words`you tried to allocate ${whole("requestedBytes")} bytes`,
    verdict: ({ size }) =>
      genuine(
        `PyTorch could not allocate ${size("requestedBytes")} of host memory for a tensor on the CPU`,
        ["TM-A132"],
      ),
  },
];

export const TABLE_START = new RegExp(
  [...new Set(ROWS.map(({ start }) => start.source))].join("|"),
);

/** @param text the message and a few lines after it; null if the table does not have it */
export function readTableMessage(text: string): OomReading | null {
  const squeezed = squeeze(text);
  for (const row of ROWS) {
    const found = readRow(row, text, squeezed);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

/** Whether two lines are one failure: llama.cpp and TensorRT write several, with one request or none. */
export function continuesTableMessage(message: string, text: string): boolean {
  const [before, next] = [otherRow(message), otherRow(text)];
  if (before === undefined || next === undefined || before.library !== next.library) {
    return false;
  }
  const [one, two] = [requestOf(before, message), requestOf(next, text)];
  const differs = one !== null && two !== null && Math.abs(one - two) > 0.01 * one;
  return !differs && (before !== next || one === null || two === null);
}

function otherRow(text: string): MessageRow | undefined {
  return ROWS.find(({ framework, start }) => framework === "other" && start.test(text));
}

function requestOf(row: MessageRow, text: string): Bytes | null {
  return readRow(row, text, squeeze(text))?.figures.requestedBytes ?? null;
}
