/** Messages as they occur in logs, by version, wrapped and prefixed. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { itemAt } from "../../model/base/columns.js";
import type { OomEventJson } from "../../model/documents/gpu/gpu_document.js";
import { logLines } from "./log/log_lines.js";
import { readOomLog } from "./oom_log.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-oom-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const gib = (figure: number) => Math.round(figure * GIB);

let files = 0;
async function events(text: string | Uint8Array): Promise<OomEventJson[]> {
  const path = join(folder, `${files++}.log`);
  writeFileSync(path, text);
  return (await readOomLog(path, logLines(path))).events;
}

async function only(text: string): Promise<OomEventJson> {
  const found = await events(text);
  expect(found.length).toBe(1);
  return itemAt(found, 0);
}

/** 2.2 and later; the parts that a message may leave out are given. */
function modern(
  figures: { request: string; total: string; free: string; allocated: string; split: string },
  {
    others = "",
    own = "",
    pools = "",
    allowed = "",
    error = "torch.OutOfMemoryError",
    conf = "PYTORCH_CUDA_ALLOC_CONF",
    gpu = "0",
  } = {},
): string {
  return (
    `${error}: CUDA out of memory. Tried to allocate ${figures.request}. GPU ${gpu} has a total capacity of ` +
    `${figures.total} of which ${figures.free} is free. ${others}${own}${allowed}Of the allocated memory ` +
    `${figures.allocated} is allocated by PyTorch, ${pools}and ${figures.split} is reserved by PyTorch but ` +
    `unallocated. If reserved but unallocated memory is large try setting ${conf}=expandable_segments:True ` +
    `to avoid fragmentation.  See documentation for Memory Management\n`
  );
}

const FULL = {
  request: "2.00 GiB",
  total: "80.00 GiB",
  free: "1.00 GiB",
  allocated: "77.50 GiB",
  split: "300.00 MiB",
};
const OWN = "Including non-PyTorch memory, this process has 78.50 GiB memory in use. ";

describe("PyTorch", () => {
  test.each([
    [
      "up to 1.3",
      "RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 1; 10.92 GiB total capacity; 8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB cached)",
      {
        device: 1,
        requestedBytes: 12.5 * MIB,
        totalBytes: gib(10.92),
        freeBytes: gib(9.28),
        allocatedBytes: Math.round(8.57 * MIB),
        kind: "unknown",
      },
    ],
    [
      "1.4 to 2.0",
      "RuntimeError: CUDA out of memory. Tried to allocate 128.00 MiB (GPU 0; 11.17 GiB total capacity; 10.85 GiB already allocated; 24.81 MiB free; 10.86 GiB reserved in total by PyTorch)",
      {
        device: 0,
        requestedBytes: 128 * MIB,
        reservedUnallocatedBytes: gib(10.86) - gib(10.85),
        kind: "genuine",
      },
    ],
    [
      "1.4 to 2.0",
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 24.00 GiB total capacity; 14.00 GiB already allocated; 512.00 MiB free; 22.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb",
      { reservedUnallocatedBytes: 8 * GIB, kind: "fragmentation" },
    ],
    [
      "2.1",
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 496.00 MiB. GPU 0 has a total capacty of 14.75 GiB of which 235.06 MiB is free. Process 20398 has 14.52 GiB memory in use. Of the allocated memory 14.06 GiB is allocated by PyTorch, and 330.42 MiB is reserved by PyTorch but unallocated.",
      {
        totalBytes: gib(14.75),
        otherProcesses: [{ pid: 20398, bytes: gib(14.52) }],
        kind: "genuine",
      },
    ],
    ["2.5 or later", modern(FULL, { own: OWN }), { processBytes: gib(78.5), kind: "genuine" }],
    [
      "2.2 to 2.4",
      modern(FULL, { own: OWN, error: "torch.cuda.OutOfMemoryError" }),
      { kind: "genuine" },
    ],
    ["2.9 or later", modern(FULL, { own: OWN, conf: "PYTORCH_ALLOC_CONF" }), { kind: "genuine" }],
    ["2.5 or later", modern(FULL, { own: OWN, gpu: "" }), { device: null, kind: "genuine" }],
    [
      "2.5 or later",
      modern(
        { ...FULL, allocated: "60.00 GiB", split: "17.80 GiB" },
        { own: OWN, pools: "with 44.00 MiB allocated in private pools (e.g., CUDA Graphs), " },
      ),
      { privatePoolBytes: 44 * MIB, allocatedBytes: 60 * GIB, kind: "fragmentation" },
    ],
    [
      "2.5 or later",
      modern(
        {
          ...FULL,
          request: "20.00 MiB",
          free: "5.19 MiB",
          allocated: "8.44 GiB",
          split: "100.20 MiB",
        },
        {
          others: "Process 3121 has 70.00 GiB memory in use. ",
          own: "Including non-PyTorch memory, this process has 9.02 GiB memory in use. ",
        },
      ),
      { otherProcesses: [{ pid: 3121, bytes: 70 * GIB }], kind: "contention" },
    ],
    [
      "2.5 or later",
      modern(
        { ...FULL, free: "500.00 MiB", allocated: "50.00 GiB", split: "1.00 GiB" },
        { own: "Including non-PyTorch memory, this process has 79.40 GiB memory in use. " },
      ),
      { kind: "context" },
    ],
    [
      "2.5 or later",
      modern({
        ...FULL,
        request: "55.57 GiB",
        total: "12.00 GiB",
        free: "9.02 GiB",
        allocated: "984.52 MiB",
        split: "463.48 MiB",
      }),
      { kind: "genuine" },
    ],
    [
      "2.5 or later",
      modern(
        { ...FULL, free: "60.00 GiB", allocated: "19.00 GiB", split: "10.00 MiB" },
        {
          own: "Including non-PyTorch memory, this process has 20.00 GiB memory in use. ",
          allowed: "20.00 GiB allowed; ",
        },
      ),
      { allowedBytes: 20 * GIB, kind: "genuine" },
    ],
    [
      "2.5 or later",
      modern({ ...FULL, request: "512 bytes", free: "0 bytes" }).replaceAll("CUDA out", "HIP out"),
      { requestedBytes: 512, freeBytes: 0, kind: "genuine" },
    ],
  ])("%s: %s", async (torch, text, expected) => {
    expect(await only(`step 3 done\n${text}\nbye\n`)).toMatchObject({
      torch,
      line: 2,
      framework: "pytorch",
      rank: null,
      ...expected,
    });
  });

  test("the setting has its right name for the version and the platform", async () => {
    const split = { ...FULL, allocated: "60.00 GiB", split: "17.80 GiB" };
    const names = async (text: string) =>
      (await only(text)).advice.map((one) => one.text).join(" ");
    expect(await names(modern(split))).toContain("PYTORCH_CUDA_ALLOC_CONF=expandable_segments");
    // 2.9.1 names the shorter one and does not heed it; the older one is read by every version.
    const newer = await names(modern(split, { conf: "PYTORCH_ALLOC_CONF" }));
    expect(newer).toContain("Set PYTORCH_ALLOC_CONF=expandable_segments");
    expect(newer).toContain("set PYTORCH_CUDA_ALLOC_CONF to the same");
    expect(await names(modern(split).replaceAll("CUDA out", "HIP out"))).toContain(
      "PYTORCH_HIP_ALLOC_CONF=",
    );
  });

  test.each([20, 37, 61, 80, 119])(
    "wrapped hard at %d columns, within words and figures",
    async (width) => {
      const text = modern(FULL, { others: "Process 77 has 1.25 GiB memory in use. ", own: OWN });
      const wrapped = text.match(new RegExp(`.{1,${width}}`, "g"))?.join("\n") ?? "";
      if (width < 24) {
        return expect((await events(wrapped)).length).toBeLessThanOrEqual(1);
      }
      const whole = await only(text);
      const { line, torch, advice, ...figures } = await only(`x\n${wrapped}\n`);
      expect(figures).toEqual(
        Object.fromEntries(Object.entries(whole).filter(([key]) => key in figures)),
      );
    },
  );

  test("the writer if a prefix has no rank: hosts with equal figures are counted separately", async () => {
    const text = modern(FULL).trim();
    const rows = [
      "[pod/trainer-worker-3/pytorch] ",
      "[pod/trainer-worker-4/pytorch] ",
      "",
      "api-1  | ",
    ];
    const found = await events(
      rows
        .slice(0, 3)
        .map((prefix) => `${prefix}${text}`)
        .join("\n"),
    );
    expect(found.map(({ rank, writer, repeats }) => [rank, writer, repeats])).toEqual([
      [null, "pod/trainer-worker-3/pytorch", 1],
      [null, "pod/trainer-worker-4/pytorch", 0],
    ]);
    expect((await only(`${rows[3]}${text}`)).writer).toBe("api-1");
  });

  test("every launcher's prefix, ranks interleaved and wrapped", async () => {
    const long = (rank: number) => modern(FULL, { own: OWN, gpu: String(rank) }).trim();
    const cut = (rank: number) => [
      long(rank).slice(0, 130),
      long(rank).slice(130, 260),
      long(rank).slice(260),
    ];
    const rows = [0, 1, 2].flatMap((part) =>
      [0, 3, 12].map((rank) => `[rank${rank}]: ${cut(rank)[part]}`),
    );
    const found = await events(rows.join("\n"));
    expect(found.map(({ rank, device, processBytes }) => [rank, device, processBytes])).toEqual(
      [0, 3, 12].map((rank) => [rank, rank, gib(78.5)]),
    );
    for (const [prefix, rank] of [
      ["[default5]:", 5],
      ["[1,6]<stderr>:", 6],
      ["rank 7: ", 7],
      ["(RayTrainWorker pid=991, ip=10.0.0.3) ", null],
      ["trainer-2  | ", 2],
      ["4: ", 4],
      ["\x1b[36m(MyActor pid=5)\x1b[0m ", null],
      ["2024-05-01 10:00:00,123 ERROR train.py:33 ", null],
    ] as const) {
      expect((await only(`${prefix}${long(1)}`)).rank).toBe(rank);
    }
  });

  test("the traceback before it, and the same message repeated", async () => {
    const message = modern(FULL, { own: OWN });
    const event = await only(
      `Traceback (most recent call last):\n  File "/srv/train.py", line 9, in <module>\n    main()\n  File "/srv/model.py", line 41, in forward\n    return a @ b\n${message}\nERROR ${message}`,
    );
    expect(event.repeats).toBe(1);
    expect(event.stack.map(({ function: name, line }) => [name, line])).toEqual([
      ["forward", 41],
      ["<module>", 9],
    ]);
  });

  test.each([
    "RuntimeError: CUDA error: out of memory",
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "ncclUnhandledCudaError: Call to CUDA function failed. Last error: Cuda failure 'out of memory'",
  ])("from outside the allocator: %s", async (text) => {
    expect(await only(text)).toMatchObject({ kind: "context", requestedBytes: null });
  });

  test("text that is not a message", async () => {
    expect(await events("we handle CUDA errors\nno more memory leaks\nMemoryError\n")).toEqual([]);
    expect(await events("")).toEqual([]);
    expect(await events(Uint8Array.from({ length: 5000 }, (_, at) => (at * 37) % 256))).toEqual([]);
  });
});

const DUMP = `2022-02-11 12:56:32.1: W tensorflow/core/common_runtime/bfc_allocator.cc:457] Allocator (GPU_1_bfc) ran out of memory trying to allocate 3.72GiB (rounded to 3994418944)requested by op conv
2022-02-11 12:56:42.7: I tensorflow/core/common_runtime/bfc_allocator.cc:1066] InUse at 703ae6300 of size 1024 next 50
2022-02-11 12:56:42.8: I tensorflow/core/common_runtime/bfc_allocator.cc:1100] Stats: 
Limit:                     8589934592
InUse:                     IN_USE
MaxInUse:                  8489934592
NumAllocs:                       4812
MaxAllocSize:              1073741824
LargestFreeBlock:           536870912

2022-02-11 12:56:42.9: W tensorflow/core/framework/op_kernel.cc:1745] OP_REQUIRES failed : RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[1000,1000,998,1] and type float on /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc
`;

describe("JAX and TensorFlow", () => {
  test("a dump of TensorFlow's allocator", async () => {
    expect(await only(DUMP.replace("IN_USE", "8489934592"))).toMatchObject({
      framework: "tensorflow",
      device: 1,
      line: 1,
      requestedBytes: 3_994_418_944,
      totalBytes: 8 * GIB,
      allocatedBytes: 8_489_934_592,
      kind: "genuine",
    });
    expect(await only(DUMP.replace("IN_USE", "3489934592"))).toMatchObject({
      kind: "fragmentation",
    });
  });

  test("TensorFlow's exception without its log", async () => {
    const text =
      "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[25088,4096] and type half on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc";
    expect(await only(text)).toMatchObject({
      framework: "tensorflow",
      device: 0,
      requestedBytes: 25088 * 4096 * 2,
      kind: "unknown",
    });
  });

  test.each([
    [
      "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.",
      16 * GIB,
      null,
    ],
    ["XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 8388608 bytes.", 8 * MIB, null],
    [
      "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 64.00KiB.",
      64 * KIB,
      null,
    ],
    [
      "XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.50GiB (2684354560B) on device ordinal 3",
      2684354560,
      3,
    ],
  ])("%s", async (text, requestedBytes, device) => {
    expect(await only(text)).toMatchObject({ framework: "jax", requestedBytes, device });
  });
});

test("a log of a hundred megabytes in one pass, compressed too, with lines without end", async () => {
  const noise = `${"loss 0.12 it/s 33 ".repeat(40)}\n`.repeat(2000);
  const endless = "x".repeat(3_000_000);
  const path = join(folder, "large.log");
  const text = `${noise.repeat(70)}${endless}\n${modern(FULL, { own: OWN })}${noise}`;
  writeFileSync(path, text);
  const document = await readOomLog(path, logLines(path));
  expect(document.events.map(({ line }) => line)).toEqual([140_002]);
  expect(document.lines).toBe(142_002);
  const packed = join(folder, "packed");
  writeFileSync(packed, gzipSync(`${noise}${modern(FULL)}`));
  expect((await readOomLog(packed, logLines(packed))).events.length).toBe(1);
  const missing = join(folder, "missing.log");
  await expect(readOomLog(missing, logLines(missing))).rejects.toMatchObject({ id: "TM-E003" });
});
