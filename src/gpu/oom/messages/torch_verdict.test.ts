/** Figures of PyTorch's messages, and what is made of those that are missing, impossible or the program's own. */

import { expect, test } from "vitest";
import { itemAt } from "../../../model/base/columns.js";
import type { OomEventJson } from "../../../model/documents/gpu/gpu_document.js";
import { readOomLog } from "../oom_log.js";

const MIB = 2 ** 20;
const GIB = 2 ** 30;

async function only(text: string): Promise<OomEventJson> {
  async function* pieces() {
    yield text.split("\n").map((line, at) => ({ number: at + 1, text: line }));
  }
  const { events } = await readOomLog("a.log", pieces());
  expect(events.length).toBe(1);
  return itemAt(events, 0);
}

const old = (request: string, total: string, allocated: string, free: string, rest: string) =>
  `RuntimeError: CUDA out of memory. Tried to allocate ${request} (GPU 0; ${total} total capacity; ${allocated} already allocated; ${free} free; ${rest})`;
const modern = (request: string, total: string, free: string, rest = "") =>
  `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ${request}. GPU 0 has a total capacity of ${total} of which ${free} is free. ${rest}`;
const own = (size: string) =>
  `Including non-PyTorch memory, this process has ${size} memory in use. `;
const held = (allocated: string, split: string) =>
  `Of the allocated memory ${allocated} is allocated by PyTorch, and ${split} is reserved by PyTorch but unallocated.`;

test.each<[string, string, Partial<OomEventJson>]>([
  [
    "up to 1.3, cached is what is not allocated",
    old("1.50 GiB", "10.00 GiB", "4.00 GiB", "300.00 MiB", "5.00 GiB cached"),
    { reservedUnallocatedBytes: 5 * GIB, kind: "fragmentation" },
  ],
  [
    "a form that nobody knows is not guessed at",
    old("1.00 GiB", "16.00 GiB", "14.00 GiB", "512.00 MiB", "1.20 GiB cached; 200.00 MiB inactive"),
    { reservedUnallocatedBytes: null, kind: "unknown" },
  ],
  [
    "what NVML calls not available is not a size",
    modern(
      "34.00 MiB",
      "4.00 GiB",
      "0 bytes",
      `Process 9132 has 17179869184.00 GiB memory in use. ${own("17179869184.00 GiB")}${held("3.90 GiB", "20.00 MiB")}`,
    ),
    { processBytes: null, otherProcesses: [], kind: "genuine" },
  ],
  [
    "a process that NVML does not see is no empty one",
    modern("1.80 GiB", "22.00 GiB", "1.20 GiB", own("0 bytes") + held("19.00 GiB", "1.40 GiB")),
    { processBytes: null, kind: "fragmentation" },
  ],
  [
    "cut before what PyTorch holds",
    modern("2.00 MiB", "44.50 GiB", "448.00 KiB"),
    { allocatedBytes: null, kind: "unknown" },
  ],
  [
    "cut behind what the process holds",
    modern("8.00 GiB", "23.50 GiB", "6.60 GiB", own("16.40 GiB")),
    { kind: "unknown" },
  ],
  [
    "cut behind its first words",
    "torch.cuda.OutOfMemoryError: CUDA out of memory.",
    { kind: "unknown" },
  ],
  [
    "as much free as was asked for, and more",
    modern("12.95 GiB", "127.00 GiB", "18.55 GiB", held("99.37 GiB", "121.80 MiB")),
    { kind: "unknown" },
  ],
  [
    "free by far, and much in pieces",
    modern("2.00 MiB", "288.00 GiB", "203.00 GiB", held("68.00 GiB", "14.90 GiB")),
    { kind: "unknown" },
  ],
  [
    "free but for what a driver keeps, and others hold the rest",
    modern("6.05 GiB", "15.78 GiB", "6.06 GiB", held("1.54 GiB", "100.00 MiB")),
    { kind: "unknown" },
  ],
  [
    "a few MiB free are none: a segment is larger",
    old("1.12 MiB", "22.00 GiB", "15.00 GiB", "3.50 MiB", "100.00 MiB cached"),
    { kind: "contention" },
  ],
  [
    "more than the device has was allocated: the driver moved it",
    modern("174.00 MiB", "6.00 GiB", "0 bytes", held("12.00 GiB", "319.00 MiB")),
    { kind: "genuine", because: expect.stringMatching(/host's memory/) },
  ],
  [
    "of several processes one is this: they are named",
    modern(
      "136.00 MiB",
      "44.50 GiB",
      "32.00 MiB",
      `Process 11 has 40.00 GiB memory in use. Process 12 has 2.00 GiB memory in use. ${held("1.50 GiB", "167.00 MiB")}`,
    ),
    { kind: "contention", because: expect.stringMatching(/process 11 40\.00 GiB/) },
  ],
  [
    "wrapped by a web page into other blanks",
    modern("2.00 GiB", "24.00 GiB", "1.00 GiB", held("14.00 GiB", "6.00 GiB")).replaceAll(
      " ",
      "\u00a0",
    ),
    { kind: "fragmentation" },
  ],
  [
    "another device's plug-in",
    "RuntimeError: NPU out of memory. Tried to allocate 5.00 GiB (NPU 3; 61.00 GiB total capacity; 49.50 GiB already allocated; 49.50 GiB current active; 1.30 GiB free; 57.50 GiB reserved in total by PyTorch)",
    { device: 3, freeBytes: Math.round(1.3 * GIB), kind: "fragmentation", torch: "" },
  ],
])("%s", async (_, text, expected) => {
  expect(await only(text)).toMatchObject({ framework: "pytorch", ...expected });
});

test.each([
  [
    "the device had far more",
    modern(
      "2.00 MiB",
      "256.00 GiB",
      "244.00 GiB",
      `1.05 GiB allowed; ${held("1017.00 MiB", "55.00 MiB")}`,
    ),
    "genuine",
  ],
  [
    "the sum goes beyond it",
    modern(
      "2.13 GiB",
      "8.00 GiB",
      "6.10 GiB",
      `2.63 GiB allowed; ${held("954.00 MiB", "0 bytes")}`,
    ),
    "genuine",
  ],
  [
    "what is in pieces would have done",
    modern(
      "3.98 GiB",
      "31.80 GiB",
      "16.30 GiB",
      `17.50 GiB allowed; ${held("6.74 GiB", "7.02 GiB")}`,
    ),
    "fragmentation",
  ],
])("the program's own limit: %s", async (_, text, kind) => {
  const event = await only(text);
  expect(event.kind).toBe(kind);
  expect(event.because).toMatch(/allows itself/);
  expect(event.advice.map(({ id }) => id)).toContain("TM-A126");
});

const SPLIT_HINT =
  " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.";
const PIECES = ["2.00 GiB", "24.00 GiB", "14.00 GiB", "512.00 MiB"] as const;

test.each([
  ["up to 1.3", old(...PIECES, "8.00 GiB cached"), ["TM-A130", "TM-A131"]],
  ["1.4", old(...PIECES, "22.00 GiB reserved in total by PyTorch"), ["TM-A130", "TM-A131"]],
  [
    "2.0",
    old(...PIECES, "22.00 GiB reserved in total by PyTorch") + SPLIT_HINT,
    ["TM-A102", "TM-A130", "TM-A131"],
  ],
  [
    "2.1",
    modern("2.00 GiB", "24.00 GiB", "1.00 GiB", held("14.00 GiB", "6.00 GiB")).replace(
      "capacity",
      "capacty",
    ),
    ["TM-A101", "TM-A103", "TM-A102"],
  ],
  [
    "Windows",
    `${modern("2.00 GiB", "24.00 GiB", "1.00 GiB", held("14.00 GiB", "6.00 GiB"))}\n  File "C:\\train\\a.py", line 3, in step`,
    ["TM-A102", "TM-A103", "TM-A131"],
  ],
  [
    "XPU",
    modern("2.00 GiB", "24.00 GiB", "1.00 GiB", held("14.00 GiB", "6.00 GiB")).replace(
      "CUDA",
      "XPU",
    ),
    ["TM-A131"],
  ],
])("expandable segments are advised if they are available: %s", async (_, text, advice) => {
  const event = await only(text);
  expect(event.kind).toBe("fragmentation");
  expect(event.advice.map(({ id }) => id)).toEqual(advice);
});

test.each([
  `CUDA out of memory. Tried to allocate 2.00 GiB. ${"9".repeat(120_000)}`,
  `CUDA out of memory. Tried to allocate 2.00 GiB. ${"-".repeat(120_000)}`,
  `CUDA out of memory. Tried to allocate 2.00 GiB. ${" ".repeat(120_000)}`,
  `${"XlaRuntimeError ".repeat(8000)}\nCUDA out of memory. Tried to allocate 2.00 GiB.`,
  `${"-".repeat(120_000)}\n${" ".repeat(120_000)}\nCUDA out of memory. Tried to allocate 2.00 GiB.`,
])("a line without end is read like any other", async (text) => {
  expect(await only(text)).toMatchObject({ requestedBytes: 2 * GIB });
});

test("an endless run of digits is not a number", async () => {
  async function* pieces() {
    yield [{ number: 1, text: `CUDA out of memory. Tried to allocate ${"9".repeat(120_000)} GiB` }];
  }
  expect((await readOomLog("a.log", pieces())).events).toEqual([]);
});

test("ranks that share a stream: two messages on one line, and one repeated", async () => {
  const [a, b] = [1, 2].map((request) =>
    modern(`${request}.00 GiB`, "24.00 GiB", "1.00 MiB", held("23.00 GiB", "20.00 MiB")),
  );
  async function* pieces() {
    yield [
      { number: 1, text: `${a}${b}` },
      { number: 2, text: `[rank1]: ${b}` },
    ];
  }
  const { events } = await readOomLog("a.log", pieces());
  expect(
    events.map(({ requestedBytes, rank, repeats }) => [requestedBytes, rank, repeats]),
  ).toEqual([
    [1024 * MIB, null, 0],
    [2048 * MIB, 1, 1],
  ]);
});

test("a terminal wraps a prefixed line without the prefix", async () => {
  const text = `[rank2]: ${modern("2.00 GiB", "24.00 GiB", "1.00 GiB", held("14.00 GiB", "6.00 GiB"))}`;
  const wrapped = text.match(/.{1,100}/g)?.join("\n") ?? "";
  expect(await only(`${wrapped}\nbye`)).toMatchObject({ rank: 2, kind: "fragmentation" });
});
