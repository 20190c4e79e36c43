/** `tidemark gpu top`: the driver's answers as nvidia-smi prints them, recordings by the real writer. */

import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv } from "ajv";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { parseInstances } from "../../src/gpu/devices/device_instances.js";
import { readStat } from "../../src/linux/index.js";
import type { GpuTopJson } from "../../src/model/documents/gpu/gpu_document.js";
import { FileSink } from "../../src/recording/frames/file_sink.js";
import { RecordingWriter } from "../../src/recording/writer.js";
import { execute, repository, tidemark } from "../run.js";
import { Terminal } from "../terminal.js";

const MIB = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), "tidemark-gpu-top-"));
let terminal: Terminal | null = null;
afterEach(() => {
  terminal?.kill();
  terminal = null;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** `nvidia-smi -q` of a driver 550 on a host with one whole and one divided device, shortened. */
const QUERY = `
==============NVSMI LOG==============

Timestamp                                 : Sat Nov 21 08:00:00 2026
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 2
GPU 00000000:07:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    GPU UUID                              : GPU-aa
    FB Memory Usage
        Total                             : 81559 MiB
        Used                              : 2048 MiB
    Processes
        GPU instance ID                   : N/A
        Compute instance ID               : N/A
        Process ID                        : 1
            Type                          : C
            Name                          : python
            Used GPU Memory               : 1536 MiB

GPU 00000000:0A:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    MIG Mode
        Current                           : Enabled
        Pending                           : Enabled
    MIG Device
        Index                             : 0
        GPU Instance ID                   : 1
        Compute Instance ID               : 0
        Device Attributes
            Shared
                Multiprocessor count      : 42
                Copy Engine count         : 3
        ECC Errors
            Volatile
                SRAM Uncorrectable        : 0
        FB Memory Usage
            Total                         : 19968 MiB
            Reserved                      : 0 MiB
            Used                          : 4112 MiB
            Free                          : 15856 MiB
        BAR1 Memory Usage
            Total                         : 32767 MiB
            Used                          : 2 MiB
    MIG Device
        Index                             : 1
        GPU Instance ID                   : 2
        Compute Instance ID               : 0
        FB Memory Usage
            Total                         : 19968 MiB
            Used                          : 12 MiB
    GPU UUID                              : GPU-bb
    FB Memory Usage
        Total                             : 40960 MiB
        Used                              : 4124 MiB
    Processes
        GPU instance ID                   : 1
        Compute instance ID               : 0
        Process ID                        : 999999999
            Type                          : C
            Name                          : python
            Used GPU Memory               : 4096 MiB
`;

/** A driver with these answers: rows of devices, rows of processes, and the complete query. */
function driver(devices: readonly string[], processes: readonly string[], query = ""): string {
  const place = mkdtempSync(join(folder, "driver-"));
  const quoted = (lines: readonly string[]) => lines.map((line) => `echo "${line}"`).join("; ");
  writeFileSync(join(place, "query"), query);
  const script = join(place, "nvidia-smi");
  writeFileSync(
    script,
    `#!/bin/sh\ncase "$1" in\n--query-gpu*) ${quoted(devices)};;\n--query-compute-apps*) ${quoted(processes)};;\n-q) cat "${join(place, "query")}";;\nesac\n`,
  );
  chmodSync(script, 0o755);
  return `${place}:${process.env.PATH}`;
}

async function snapshot(path: string, ...words: string[]): Promise<GpuTopJson> {
  const { status, stdout, stderr } = await execute([tidemark, "gpu", "top", "--json", ...words], {
    env: { PATH: path },
  });
  expect([status, stderr]).toEqual([0, ""]);
  const document = JSON.parse(stdout) as GpuTopJson;
  const schema = JSON.parse(
    readFileSync(join(repository, "docs/json/gpu_top-1.json"), "utf8"),
  ) as object;
  const check = new Ajv({ strict: false }).compile(schema);
  expect(check(document), JSON.stringify(check.errors)).toBe(true);
  return document;
}

const H100 = "0, GPU-aa, NVIDIA H100 80GB HBM3, 81559, 2048, 37, Disabled";
const H100_TOO = "1, GPU-cc, NVIDIA H100 80GB HBM3, 81559, 9000, 12, Disabled";
const A100 = "1, GPU-bb, NVIDIA A100-SXM4-40GB, 40960, 4124, [N/A], Enabled";

describe("divided devices", () => {
  const path = driver([H100, A100], ["1, GPU-aa, 1536", "999999999, GPU-bb, [N/A]"], QUERY);

  test("each instance separately, and its processes with memory that the driver otherwise does not report", async () => {
    const { devices, limits } = await snapshot(path);
    expect(devices[0]?.instances).toBe(undefined);
    expect(devices[1]?.instances).toEqual([
      {
        index: 0,
        gpuInstance: 1,
        computeInstance: 0,
        totalBytes: 19968 * MIB,
        usedBytes: 4112 * MIB,
      },
      {
        index: 1,
        gpuInstance: 2,
        computeInstance: 0,
        totalBytes: 19968 * MIB,
        usedBytes: 12 * MIB,
      },
    ]);
    expect(devices[1]?.processes).toMatchObject([{ deviceBytes: 4096 * MIB, instance: 0 }]);
    expect(limits.join()).not.toMatch(/MIG|keeps back/);
    const { stdout } = await execute([tidemark, "gpu", "top"], { env: { PATH: path } });
    expect(stdout).toMatch(/^ {2}MIG 1 \(instance 2\/0\) {2}12\.0 MiB of 19\.5 GiB/m);
  });

  test("other text contains no message", () => {
    for (const text of ["", "No devices were found\n", "{}", ":::\n : \n"]) {
      expect(parseInstances(text)).toEqual({ instances: [], processes: [] });
    }
    const cut = parseInstances(QUERY.slice(0, QUERY.indexOf("Compute Instance ID")));
    expect(cut.instances.length).toBeLessThanOrEqual(1);
  });
});

/** A growing recording of this test process, with allocators that hold these amounts. */
function growing(held: readonly { reserved: number; allocated: number }[]): RecordingWriter {
  const writer = new RecordingWriter(
    FileSink.open(join(folder, `${held.length}-${held[0]?.reserved}.tidemark`)),
  );
  const startedMs = Date.now() - 5000;
  writer.begin({
    tidemarkVersion: "0.1.0",
    command: ["python", "train.py"],
    pid: process.pid,
    startedMs,
    host: "host",
    kernel: "6.1",
    runId: "00112233aabbccdd",
    periodBytes: 65536,
    keeper: null,
    recorder: { pid: process.pid, startTicks: readStat(process.pid)?.startTicks ?? 0 },
  });
  writer.processes(startedMs, [
    {
      series: 0,
      pid: process.pid,
      parentPid: 1,
      python: "3.12.1",
      profiled: true,
      command: ["python", "train.py"],
      startedMs,
      endedMs: null,
    },
  ]);
  for (const [turn, timeMs] of [startedMs + 1000, startedMs + 2000].entries()) {
    writer.metrics(timeMs, [
      { timeMs, series: 0, metric: "rssBytes", value: MIB },
      ...held.flatMap(({ reserved, allocated }, device) => [
        {
          timeMs,
          series: 0,
          metric: `gpu.${device}.reservedBytes` as const,
          value: (reserved * MIB) / (2 - turn),
        },
        {
          timeMs,
          series: 0,
          metric: `gpu.${device}.allocatedBytes` as const,
          value: (allocated * MIB) / (2 - turn),
        },
      ]),
    ]);
  }
  return writer;
}

describe("the programs' own allocators", () => {
  test("the newest reading of a recording, and the rest", async () => {
    const writer = growing([{ reserved: 900, allocated: 800 }]);
    try {
      const path = driver([H100], [`${process.pid}, GPU-aa, 1536`]);
      const { devices, limits } = await snapshot(path);
      const own = devices[0]?.processes[0];
      expect(own).toMatchObject({
        deviceBytes: 1536 * MIB,
        allocator: { reservedBytes: 900 * MIB, allocatedBytes: 800 * MIB },
        outsideBytes: 636 * MIB,
      });
      expect(own?.rssBytes).toBeGreaterThan(MIB);
      expect(limits).toEqual([]);
      const { stdout } = await execute([tidemark, "gpu", "top"], { env: { PATH: path } });
      expect(stdout).toMatch(/PID +DEVICE +ALLOCATED +RESERVED +OUTSIDE +RSS +COMMAND/);
      expect(stdout).toMatch(/1\.50 GiB +800 MiB +900 MiB +636 MiB/);
    } finally {
      writer.close();
    }
  });

  test("two devices are matched in order; if impossible, nothing is shown", async () => {
    const processes = [`${process.pid}, GPU-aa, 1536`, `${process.pid}, GPU-cc, 8000`];
    const path = driver([H100, H100_TOO], processes);
    for (const [held, expected] of [
      [
        [1000, 7000],
        [1000, 7000],
      ],
      [
        [7000, 1000],
        [undefined, undefined],
      ],
      [[1000], [undefined, undefined]],
    ] as const) {
      const writer = growing(held.map((reserved) => ({ reserved, allocated: reserved / 2 })));
      try {
        const { devices } = await snapshot(path);
        const reserved = devices.map(({ processes }) => processes[0]?.allocator?.reservedBytes);
        expect(reserved).toEqual(expected.map((bytes) => bytes && bytes * MIB));
      } finally {
        writer.close();
      }
    }
  });
});

test("live: on a terminal it refreshes, keys sort and scroll, q leaves", async () => {
  const many = Array.from({ length: 40 }, (_, row) => `${row + 900_000_000}, GPU-aa, ${row + 1}`);
  const path = driver([H100], [`${process.pid}, GPU-aa, 1536`, ...many]);
  terminal = await Terminal.open(
    ["env", `PATH=${path}`, tidemark, "gpu", "top", "--interval", "200ms"],
    { columns: 100, rows: 24 },
  );
  const first = await terminal.shows(/by device[\s\S]*1\.50 GiB/);
  expect(terminal.buffer).toBe("alternate");
  expect(first.split("\n").every((line) => line.length <= 100)).toBe(true);
  terminal.type("p");
  await terminal.shows(/by pid/);
  const top = terminal.screen();
  terminal.type("\x1b[6~");
  await terminal.shows((screen) => screen !== top && !screen.includes("Device 0"));
  terminal.type("q");
  expect(await terminal.ended()).toBe(0);
  expect(terminal.buffer).toBe("normal");
});

test("live: no driver is one line, before the screen changes", async () => {
  terminal = await Terminal.open(
    ["env", `PATH=${folder}:${join(process.execPath, "..")}:/usr/bin:/bin`, tidemark, "gpu", "top"],
    { columns: 100, rows: 24 },
  );
  await terminal.shows(/TM-E065 no NVIDIA driver answers here/);
  expect(await terminal.ended()).toBe(4);
});
