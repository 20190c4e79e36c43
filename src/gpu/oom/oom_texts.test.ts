/** Texts as the runtimes write them: what each is taken for, and what is said to it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { OomEventJson } from "../../model/documents/gpu/gpu_document.js";
import { logLines } from "./log/log_lines.js";
import { readOomLog } from "./oom_log.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-oom-texts-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function eventsOf(text: string): Promise<OomEventJson[]> {
  const path = join(folder, "a.log");
  writeFileSync(path, text);
  return (await readOomLog(path, logLines(path))).events;
}

const TEXTS: readonly (readonly [
  text: string,
  expected: Partial<OomEventJson>,
  advice?: string,
])[] = [
  [
    "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58",
    { kind: "unknown", requestedBytes: null },
  ],
  [
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.80 GiB total capacity; 6.34 GiB already allocated; 18.31 MiB free; 6.59 GiB reserved in total by PyTorch) (malloc at /pytorch/c10/cuda/CUDACachingAllocator.cpp:289)",
    { kind: "fragmentation", torch: "1.4 to 2.0", device: 0 },
  ],
  [
    "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 15.90 GiB total capacity; 3.00 GiB already allocated; 11.00 GiB free; 4.00 GiB allowed; 3.20 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF",
    { kind: "genuine", allowedBytes: 4294967296, torch: "1.4 to 2.0" },
  ],
  [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 14.74 GiB of which 2.12 MiB is free. Process 44841 has 14.73 GiB memory in use. Of the allocated memory 13.80 GiB is allocated by PyTorch, with 44.00 MiB allocated in private pools (e.g., CUDA Graphs), and 811.57 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)",
    { kind: "fragmentation", torch: "2.10 or later", privatePoolBytes: 46137344 },
    "TM-A101",
  ],
  [
    "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.56 GiB of which 1.20 GiB is free. Of the allocated memory 13.00 GiB is allocated by PyTorch, and 500.00 MiB is reserved by PyTorch but unallocated. Please use `empty_cache` to release all unoccupied cached memory.",
    { kind: "genuine", requestedBytes: 2147483648, device: 0 },
  ],
  [
    "RuntimeError: MPS backend out of memory (MPS allocated: 17.36 GB, other allocations: 613.56 MB, max allowed: 18.13 GB). Tried to allocate 192.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).",
    { kind: "genuine", allowedBytes: 19466939269, allocatedBytes: 18640158065 },
    "TM-A123",
  ],
  [
    "torch.AcceleratorError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    { kind: "context" },
  ],
  [
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    { kind: "context" },
  ],
  ["RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", { kind: "context" }],
  [
    'Traceback (most recent call last):\n  File "/opt/lib/python3.11/site-packages/torch/utils/data/_utils/pin_memory.py", line 64, in pin_memory\n    return data.pin_memory(device)\nRuntimeError: CUDA error: out of memory',
    {
      kind: "context",
      because:
        "host memory could not be pinned for copies to the device; the message has no figures",
    },
    "TM-A122",
  ],
  [
    "ValueError: Free memory on device cuda:0 (7.34/15.49 GiB) on startup is less than desired GPU memory utilization (0.8, 12.39 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
    { kind: "contention", device: 0, requestedBytes: 13303661199, freeBytes: 7881264988 },
    "TM-A120",
  ],
  [
    "(EngineCore_DP0 pid=412) ERROR 06-02 05:17:18 [core.py:387] ValueError: To serve at least one request with the models's max seq len (40960), (10.00 GiB KV cache is needed, which is larger than the available KV cache memory (1.25 GiB). Based on the available memory, the estimated maximum model length is 5120. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
    { kind: "genuine", requestedBytes: 10737418240, freeBytes: 1342177280 },
    "TM-A121",
  ],
  [
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
    { kind: "genuine" },
    "TM-A120",
  ],
  [
    "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (24320). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
    { kind: "genuine" },
    "TM-A121",
  ],
  [
    "jaxlib._jax.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12.50GiB. [executable_name='jit_step'] [tf-allocator-allocation-error='']",
    { framework: "jax", requestedBytes: 13421772800 },
  ],
  [
    '{"level":"error","rank":3,"message":"step failed","exc_info":"Traceback (most recent call last):\\n  File \\"/srv/train.py\\", line 41, in step\\n    loss.backward()\\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.10 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and 200.00 MiB is reserved by PyTorch but unallocated."}',
    { rank: 3, device: 3, kind: "genuine" },
  ],
  [
    '{"log":"Traceback (most recent call last):\\n","stream":"stderr","time":"2025-01-01T00:00:00Z"}\n{"log":"  File \\"/srv/train.py\\", line 41, in step\\n","stream":"stderr","time":"2025-01-01T00:00:00Z"}\n{"log":"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.10 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and 200.00 MiB is reserved by PyTorch but unallocated.\\n","stream":"stderr","time":"2025-01-01T00:00:00Z"}',
    { rank: null, device: 3, kind: "genuine" },
  ],
  [
    "ERROR:root:'Traceback (most recent call last):\\n  File \"/srv/a.py\", line 3, in f\\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 24.00 GiB total capacity; 14.00 GiB already allocated; 512.00 MiB free; 22.00 GiB reserved in total by PyTorch)\\n'",
    { kind: "fragmentation", device: 0 },
  ],
  [
    "torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. Requested size: 2.00 GiB",
    { kind: "genuine", requestedBytes: 2147483648 },
    "TM-A126",
  ],
  [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.",
    { kind: "genuine", requestedBytes: null },
  ],
  [
    "RuntimeError: failed to reserve 90194313216 bytes of virtual address space. This is virtual-address-space (VSZ) exhaustion from expandable segments, not physical GPU OOM. Reduce it via PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve",
    { kind: "unknown" },
    "TM-A125",
  ],
  [
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 23.98 GiB of which 120.00 MiB is free. Of the allocated memory 23.10 GiB is allocated by PyTorch, and 290.00 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
    { kind: "genuine", torch: "2.5 to 2.8" },
  ],
  [
    "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
    { kind: "context" },
  ],
  [
    "2024-01-01 10:00:00.123456: W tensorflow/core/framework/op_kernel.cc:1830] OP_REQUIRES failed at conv_ops.cc:1068 : RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[32,512,56,56] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
    { framework: "tensorflow", requestedBytes: 205520896, device: 0 },
  ],
];

describe("one event", () => {
  test.each(TEXTS.map(([text, expected, advice = ""]) => [text, expected, advice] as const))(
    "%s",
    async (text, expected, advice) => {
      for (const log of [text, `step 1\r\n${text.replaceAll("\n", "\r\n")}\r\nbye\r\n`]) {
        const events = await eventsOf(log);
        expect(events.length).toBe(1);
        expect(events[0]).toMatchObject(expected);
        if (advice !== "") {
          expect(events[0]?.advice.map(({ id }) => id)).toContain(advice);
        }
      }
    },
  );
});

test("NCCL reports it in several lines, and PyTorch repeats it for the rank", async () => {
  const events = await eventsOf(
    "node7:123:456 [0] include/alloc.h:316 NCCL WARN Cuda failure 'out of memory'\nnode7:123:456 [0] include/alloc.h:324 NCCL WARN Failed to CUDA calloc 2097152 bytes\n[rank3]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, unhandled cuda error, NCCL version 2.19.3\n[rank3]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank3]: Last error:\n[rank3]: Cuda failure 2 'out of memory'",
  );
  expect(events.map(({ kind, rank, requestedBytes }) => [kind, rank, requestedBytes])).toEqual([
    ["context", null, 2 * 2 ** 20],
    ["context", 3, null],
  ]);
});

test("a traceback within a record of a structured log keeps its frames", async () => {
  const record = TEXTS.find(([text]) => text.startsWith('{"level"'))?.[0] ?? "";
  const [event] = await eventsOf(record);
  expect(event?.stack).toEqual([
    { function: "step", file: "/srv/train.py", line: 41, kind: "python" },
  ]);
});

test.each([
  "INFO memory: CUDA out of memory handler installed",
  '    if "CUDA out of memory" in str(error):',
  "# retries when RuntimeError mentions out of memory",
  '{"event": "config", "text": "on CUDA out of memory halve the batch"}',
  '{"log": "CUDA out of memory',
  "nvmlInit_v2 failed; omitting per-process memory info from CUDA out-of-memory messages.",
])("not an event: %s", async (line) => {
  expect(await eventsOf(`${line}\n`)).toEqual([]);
});
