/** Texts of XLA, of libraries on the device and of other frameworks: which messages are events, and which are not. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { OomEventJson } from "../../model/documents/gpu/gpu_document.js";
import { readOomLog } from "./oom_log.js";

const GIB = 2 ** 30;
const gib = (figure: number) => Math.round(figure * GIB);

async function eventsOf(text: string): Promise<OomEventJson[]> {
  async function* pieces() {
    yield text.split("\n").map((line, at) => ({ number: at + 1, text: line }));
  }
  return (await readOomLog("a.log", pieces())).events;
}

type Row = readonly [text: string, expected: Partial<OomEventJson>];

function eachIsOne(rows: readonly Row[]): void {
  test.each(rows.map(([text, expected]) => [text, expected] as const))(
    "%s",
    async (text, expected) => {
      const events = await eventsOf(`step 1\n${text}\nbye`);
      expect(events.length).toBe(1);
      expect(events[0]).toMatchObject(expected);
    },
  );
}

describe("XLA on a TPU", () => {
  eachIsOne([
    [
      "XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21.95G of 15.48G hbm. Exceeded hbm capacity by 6.47G.",
      { framework: "jax", kind: "genuine", requestedBytes: gib(21.95), totalBytes: gib(15.48) },
    ],
    [
      "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error.\nRan out of memory in memory space hbm. Used 35.56G\nof 31.25G hbm.",
      { requestedBytes: gib(35.56), totalBytes: gib(31.25) },
    ],
    [
      "RuntimeError: Bad StatusOr access: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space vmem. Used 17.00M of 16.00M vmem. Exceeded vmem capacity by 1.00M.",
      {
        memory: "scratch",
        because: expect.stringMatching(/1\.00 MiB more/),
        requestedBytes: 17 * 2 ** 20,
        advice: [expect.objectContaining({ id: "TM-A128" })],
      },
    ],
    [
      "ValueError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 196.00M. That was not possible. There are 60.94M free.; (0x0x0_HBM0)",
      {
        framework: "jax",
        kind: "genuine",
        requestedBytes: 196 * 2 ** 20,
        freeBytes: Math.round(60.94 * 2 ** 20),
      },
    ],
    [
      "ValueError: RESOURCE_EXHAUSTED: Attempting to reserve 6.10G at the bottom of memory. That was not possible. There are 6.40G free, 0B reserved, and 5.40G reservable.",
      { kind: "fragmentation", requestedBytes: gib(6.1) },
    ],
    [
      "RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 34.82G, SparseCore Hbm usage 174.10G, exceeding available bytes: 95.74G",
      { kind: "genuine", totalBytes: gib(95.74) },
    ],
    [
      "ValueError: Allocation (size=21474836480) would exceed memory (size=17179869184) :: #allocation1 [shape = 'f32[320,4096,4096]', space=hbm, size = 0x1]",
      { kind: "genuine", requestedBytes: 20 * GIB, totalBytes: 16 * GIB, memory: "device" },
    ],
  ]);
});

test("TensorFlow's log of a host allocator that ran out of memory: warning, dump, operation and error are one message", async () => {
  const file = new URL("../../../test/data/gpu/tensorflow_cpu.log", import.meta.url);
  const events = await eventsOf(readFileSync(file, "utf8"));
  expect(events).toMatchObject([
    { framework: "tensorflow", memory: "host", kind: "genuine", requestedBytes: 2 ** 24 },
  ]);
});

describe("JAX and TensorFlow are distinguished", () => {
  const dump = (path: string) =>
    `2024-01-01 10:00:00.1: W ${path}/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate 34.10MiB (rounded to 35758080)requested by op A\nCurrent allocation summary follows.`;
  eachIsOne([
    [dump("tensorflow/core/common_runtime"), { framework: "tensorflow", requestedBytes: 35758080 }],
    [dump("external/local_xla/xla/tsl/framework"), { framework: "tensorflow" }],
    [dump("external/xla/xla/tsl/framework"), { framework: "jax" }],
    [
      `OP_REQUIRES failed : RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[8939520] and type float on /job:a/device:GPU:0 by allocator GPU_0_bfc\n${dump("tensorflow/core")}\nLimit: 64000000\nInUse: 63000000`,
      { framework: "tensorflow", totalBytes: 64_000_000, memory: "pool", line: 2 },
    ],
    [
      "2024-01-01 10:00:00.1: W tensorflow/core/a.cc:2] Allocator (cuda_host_bfc) ran out of memory trying to allocate 3.00GiB.  Current allocation summary follows.",
      {
        framework: "tensorflow",
        memory: "host",
        advice: expect.arrayContaining([expect.objectContaining({ id: "TM-A133" })]),
      },
    ],
    [
      "RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[10,10] and type float on /job:a/device:CPU:0 by allocator mklcpu",
      { memory: "host", requestedBytes: 400 },
    ],
    [
      "I tensorflow/core/common_runtime/bfc_allocator.cc:694] Stats: \nLimit:                  1490198528\nInUse:                  1477023232\nMaxInUse:               1477423360\n\nW tensorflow/core/common_runtime/bfc_allocator.cc:271] Ran out of memory trying to allocate 29.91MiB.  See logs for memory state.\nW tensorflow/core/framework/op_kernel.cc:900] Resource exhausted: OOM when allocating tensor with shape[10000,1,28,28]",
      {
        framework: "tensorflow",
        kind: "genuine",
        totalBytes: 1490198528,
        requestedBytes: 31360000,
      },
    ],
    [
      "2024-01-01 10:00:00.1: E tensorflow/stream_executor/cuda/cuda_dnn.cc:329] Could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED",
      { framework: "tensorflow", kind: "context", library: "cuDNN" },
    ],
    [
      "XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to load in-memory CUBIN.: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
      { framework: "jax", kind: "context" },
    ],
    [
      "XlaRuntimeError: INTERNAL: Failed to allocate 1073741824 bytes for new constant",
      { framework: "jax", requestedBytes: GIB },
    ],
    [
      "local_client.cc:672] Execution of replica 0 failed: Resource exhausted: Out \nof memory while trying to allo\ncate 5520758552 bytes.",
      { framework: "jax", requestedBytes: 5520758552, line: 2 },
    ],
    [
      "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.\nBufferAssignment stats:\n     preallocated temp allocation:    4.44GiB\n                 total allocation:   14.44GiB",
      { kind: "genuine", because: expect.stringMatching(/14\.44 GiB/) },
    ],
    [
      "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.\nBufferAssignment stats:\n                 total allocation:   12.00MiB",
      { kind: "unknown", because: expect.stringMatching(/12\.00 MiB/) },
    ],
  ]);

  test.each([
    ["uint16", 200],
    ["complex128", 1600],
    ["qint8", 100],
    ["float8_e5m2", 100],
    ["string", null],
    ["variant", null],
  ])("elements of type %s", async (type, bytes) => {
    const [event] = await eventsOf(
      `ResourceExhaustedError: OOM when allocating tensor with shape[10,10] and type ${type} on /job:a/device:GPU:0 by allocator GPU_0_bfc`,
    );
    expect(event).toMatchObject({ requestedBytes: bytes, framework: "tensorflow" });
  });
});

describe("a driver that does not let the pool grow", () => {
  const refused = (size: string) =>
    `2023-04-23 01:00:06.3: I tensorflow/stream_executor/cuda/cuda_driver.cc:733] failed to allocate ${size} from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory`;
  eachIsOne([
    [
      `${refused("8.41G (9029127168 bytes)")}\n${refused("7.57G (8126214144 bytes)")}`,
      { framework: "tensorflow", requestedBytes: 9029127168, kind: "contention" },
    ],
    [
      `${refused("8.41G (9029127168 bytes)")}\n2023-04-23 01:00:16.8: W tensorflow/core/common_runtime/bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to allocate 560.44MiB (rounded to 587661312)requested by op B`,
      { framework: "tensorflow", requestedBytes: 587661312 },
    ],
    [
      "E tensorflow/compiler/xla/stream_executor/rocm/rocm_driver.cc:606] failed to allocate 75.58TiB (83099555725312 bytes) from device: HIP_ERROR_OutOfMemory",
      { kind: "genuine", requestedBytes: 83099555725312 },
    ],
    [
      "E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:1629] failed to alloc 2147483648 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
      { framework: "tensorflow", memory: "host", requestedBytes: 2 * GIB },
    ],
  ]);
});

describe("backend:cudaMallocAsync", () => {
  const text = (allocated: string, request: string, free: string, limit: string) =>
    `torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : ${allocated}\nRequested               : ${request}\nDevice limit            : 24.00 GiB\nFree (according to CUDA): ${free}\nPyTorch limit (set by user-supplied memory fraction)\n                        : ${limit}`;
  const none = "17179869184.00 GiB";
  eachIsOne([
    [
      text("23.10 GiB", "512.00 KiB", "0 bytes", none),
      {
        kind: "genuine",
        device: 0,
        allowedBytes: null,
        totalBytes: 24 * GIB,
        library: "cudaMallocAsync",
      },
    ],
    [text("4.86 GiB", "10.12 GiB", "0 bytes", none), { kind: "contention" }],
    [text("4.86 GiB", "1.00 GiB", "9.00 GiB", none), { kind: "unknown" }],
    [
      text("4.86 GiB", "1.00 GiB", "9.00 GiB", "5.00 GiB"),
      { kind: "genuine", allowedBytes: 5 * GIB },
    ],
    [
      `thread 'main' panicked at 'Generation("${text("16.08 GiB", "4.83 GiB", "11.12 MiB", "24.00 GiB").replaceAll("\n", "\\n")}")', main.rs:216:18`,
      { kind: "contention", allowedBytes: null },
    ],
  ]);
});

describe("the driver and the libraries on it", () => {
  eachIsOne([
    ["RuntimeError: CUDA driver error: out of memory", { kind: "context", framework: "pytorch" }],
    ["RuntimeError: HIP error: hipErrorOutOfMemory", { kind: "context", framework: "pytorch" }],
    ["RuntimeError: cuFFT error: CUFFT_ALLOC_FAILED", { kind: "context", library: "cuFFT" }],
    [
      "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
      { kind: "context", library: "cuDNN" },
    ],
    [
      "RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
      { kind: "context", framework: "pytorch" },
    ],
    ["RuntimeError: Triton Error [CUDA]: out of memory", { library: "Triton" }],
    [
      'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "/opt/pytorch/c10/cuda/CUDACachingAllocator.cpp":995, please report a bug to PyTorch.',
      { kind: "unknown", framework: "pytorch" },
    ],
    [
      "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/THCTensorRandom.cu:25",
      { kind: "context" },
    ],
    [
      "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
      { framework: "other", library: "Numba" },
    ],
    [
      "MemoryError: std::bad_alloc: cudaErrorMemoryAllocation: out of memory",
      { library: "Thrust" },
    ],
    ['Error: DriverError(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")', { framework: "other" }],
    [
      '{"level":"error","error":"CUDA error: out of memory"}',
      { kind: "context", framework: "other" },
    ],
    [
      "ERROR worker died: RuntimeError('CUDA error: out of memory')",
      { kind: "context", framework: "pytorch" },
    ],
    ["RuntimeError: Invalid buffer size: 18.00 GB", { kind: "genuine", requestedBytes: 18 * GIB }],
    [
      "node:30:66 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\nnode:30:66 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes",
      { device: 3, rank: null, requestedBytes: 6291456, library: "NCCL" },
    ],
    [
      "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs`",
      { kind: "genuine", library: "vLLM" },
    ],
    [
      "AssertionError: Error in memory profiling. Initial free memory 10.2 GiB, current free memory 11.0 GiB.",
      { kind: "contention", library: "vLLM" },
    ],
  ]);
});

describe("other frameworks", () => {
  eachIsOne([
    [
      "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 144.00 MiB on device 4: cudaMalloc failed: out of memory\nggml_gallocr_reserve_n: failed to allocate CUDA4 buffer of size 150995968",
      { framework: "other", library: "llama.cpp", device: 4, requestedBytes: 144 * 2 ** 20 },
    ],
    [
      "RuntimeError: CUDA failed with error out of memory",
      { framework: "other", library: "CTranslate2", kind: "context" },
    ],
    [
      "bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t) Failed to allocate memory for requested buffer of size 285081600",
      { library: "ONNX Runtime", requestedBytes: 285081600, kind: "unknown" },
    ],
    [
      "onnxruntime::BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer of size 4585490524328388608",
      { kind: "genuine", because: expect.stringMatching(/computed wrong/) },
    ],
    [
      "[TRT] [E] 2: Error Code 2: OutOfMemory (no further information)\n[TRT] [W] Requested amount of GPU memory (24793579520 bytes) could not be allocated.",
      { library: "TensorRT", requestedBytes: 24793579520 },
    ],
    [
      "Out of memory error on GPU 0. Cannot allocate 3.621826GB memory on GPU 0, 21.184814GB memory has been allocated and available memory is only 2.814575GB.",
      { library: "Paddle", kind: "genuine", device: 0, freeBytes: gib(2.814575) },
    ],
    [
      "Out of memory allocating 25,600,000 bytes (allocated so far: 3,635,267,072 bytes).",
      { library: "CuPy", requestedBytes: 25_600_000, allocatedBytes: 3_635_267_072 },
    ],
    [
      "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
      { library: "SGLang", kind: "genuine" },
    ],
    [
      "RuntimeError: [enforce fail at alloc_cpu.cpp:73] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 116813856768 bytes.",
      { framework: "pytorch", memory: "host", requestedBytes: 116813856768 },
    ],
  ]);
});

test.each([
  "W tensorflow/core/common_runtime/bfc_allocator.cc:271] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.16GiB with freed_by_count=0. The caller indicates that this is not a failure, but may mean that there could be performance gains if more memory were available.",
  "2020-09-23 14:43:16.0: W tensorflow/core/common_runtime/bfc_allocator.cc:211] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.11GiB.\nThe caller indicates that this is not a failure, but may mean that there could be performance gains if more memory were available.",
  `if grep -q -E "CUDA out of memory|RuntimeError: CUDA error: out of memory|Killed" log; then`,
  "enum cudaError { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 }",
  "  CUDA_ERROR_OUT_OF_MEMORY                  = 2,",
  "Handled: CUBLAS_STATUS_ALLOC_FAILED(3) -> retry ok",
  "INFO: Retrying, cudaErrorMemoryAllocation is handled by the pool (cudaErrorMemoryAllocation)",
  '        if "CUDA out of memory" in str(e) or "CUDA error: out of memory" in str(e):',
  '            raise ValueError("No available memory for the cache blocks. Try increasing")',
  "If you run into `RuntimeError: CUDA out of memory`, lower --batch-size.",
  '**Q: I get "CUDA error: out of memory"** A: use a smaller model.',
  `    _statements = ["CUDA out of memory.", "DefaultCPUAllocator: can't allocate memory"]`,
  "    if (error == cudaErrorMemoryAllocation) { // failed: try again",
  "WARN cache: Attempting to allocate 2G. This may take a while",
  "RuntimeError: CUDA error: an illegal memory access was encountered",
])("not an event: %s", async (line) => {
  expect(await eventsOf(`${line}\n`)).toEqual([]);
});
