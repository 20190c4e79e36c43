/** `tidemark gpu` as a user runs it, on files that the simulated allocator wrote. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv } from "ajv";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GpuJson, GpuTopJson, OomJson } from "../../src/model/documents/gpu/gpu_document.js";
import { execute, type RunSettings, repository, tidemark } from "../run.js";
import { pickle } from "./pickle_writer.mjs";
import { snapshotOf } from "./snapshot_file.mjs";
import { randomWorkload, runOut, trainingRun } from "./workload.mjs";

const folder = mkdtempSync(join(tmpdir(), "tidemark-gpu-cli-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const ajv = new Ajv({ strict: false });

const file = (name: string) => join(folder, name);
const gpu = (args: string[], settings?: RunSettings) =>
  execute([tidemark, "gpu", ...args], settings);

async function json<Document>(
  name: string,
  args: string[],
  settings?: RunSettings,
): Promise<Document> {
  const { status, stdout, stderr } = await gpu([...args, "--json"], settings);
  expect([status, stderr]).toEqual([0, ""]);
  const document = JSON.parse(stdout) as { schema: string };
  expect(document.schema).toBe(`tidemark.${name}/1`);
  const schema = JSON.parse(readFileSync(join(repository, `docs/json/${name}-1.json`), "utf8"));
  const check = ajv.compile(schema);
  expect(check(document), JSON.stringify(check.errors)).toBe(true);
  return document as Document;
}

const MESSAGE =
  "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 200.00 MiB. GPU 0 has a total capacity of 1000.00 MiB of which 0 bytes is free. Including non-PyTorch memory, this process has 1000.00 MiB memory in use. Of the allocated memory 500.00 MiB is allocated by PyTorch, and 500.00 MiB is reserved by PyTorch but unallocated.\n";

beforeAll(() => {
  const leaking = trainingRun({ steps: 25, leak: 2 ** 21 });
  const write = (name: string, value: object) => writeFileSync(file(name), pickle(value));
  write(
    "leak.pickle",
    snapshotOf([leaking.allocator], "plain", { annotations: leaking.annotations }),
  );
  write("short.pickle", snapshotOf([trainingRun({ steps: 3, leak: 2 ** 21 }).allocator], "pooled"));
  write("oom.pickle", snapshotOf([runOut()], "plain"));
  write("random.pickle", snapshotOf([randomWorkload(8, { events: 900 }).allocator], "legacy"));
  write("rank0.pickle", snapshotOf([trainingRun({ steps: 3 }).allocator], "plain"));
  write("rank1.pickle", snapshotOf([trainingRun({ steps: 3 }).allocator], "plain"));
  write("rank2.pickle", snapshotOf([trainingRun({ steps: 3, layers: 9 }).allocator], "plain"));
  writeFileSync(file("train.log"), `epoch 1\n${MESSAGE}`);
});

describe("a snapshot", () => {
  test("without problems: the verdict describes the contents, and how to learn more", async () => {
    const small = join(repository, "test/data/gpu/small.pickle.zst");
    const { status, stdout } = await execute([tidemark, "diagnose", small]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/not enough evidence .* in use of 840 MiB reserved.*401 events/);
    expect(stdout).toContain("TM-A091");
    expect(stdout).not.toMatch(/0 B resident|after 0\.0 s|tidemark diagnose PID/);
  });

  test("on one screen", async () => {
    const { status, stdout, stderr } = await gpu([file("leak.pickle")]);
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^Device 0 {2}1,\d+ events, \d+ segments$/m);
    expect(stdout).toMatch(/^ {2}Requested +122 MiB {2}peak 172 MiB$/m);
    expect(stdout).toMatch(/^Grows with each step {2}25 steps, detected by annotations$/m);
    expect(stdout).toMatch(/\+2\.00 MiB .* log_loss train\/metrics\.py:17 in cl/);
    expect(stdout).toContain("TM-A106");
    expect(stdout).not.toContain("…");
  });

  test("as JSON, by its schema, with the list options", async () => {
    const whole = await json<GpuJson>("gpu", [file("leak.pickle")]);
    expect(whole.devices[0]?.growth[0]?.bytesPerStep).toBe(2 ** 21);
    const one = await json<GpuJson>("gpu", [file("leak.pickle"), "--top", "1"]);
    expect(one.devices[0]?.sites.length).toBe(1);
    const named = await json<GpuJson>("gpu", [
      file("leak.pickle"),
      "--filter",
      "log_loss",
      "--min",
      "1MiB",
    ]);
    expect(named.devices[0]?.sites.map(({ bytes }) => bytes)).toEqual([50 * 2 ** 20]);
    await json("gpu", [file("random.pickle")]);
    await json("gpu", [file("oom.pickle")]);
  });

  test("out of memory: the state just before", async () => {
    const { stdout } = await gpu([file("oom.pickle")]);
    expect(stdout).toMatch(/^Out of memory at event 200: fragmentation$/m);
    expect(stdout).toMatch(/requested 200 MiB; the device had 0 B free/);
  });

  test("as a page", async () => {
    const page = file("leak.html");
    const { status, stdout } = await gpu([file("leak.pickle"), "-o", page]);
    expect(status).toBe(0);
    expect(stdout).toContain("leak.html");
    expect(readFileSync(page, "utf8")).toContain("<title>leak.pickle - Tidemark</title>");
    const both = await gpu([file("short.pickle"), file("leak.pickle"), "-o", file("both.html")]);
    expect([both.status, both.stdout]).toEqual([0, expect.stringContaining("both.html")]);
    expect(readFileSync(file("both.html"), "utf8")).toContain(
      "<title>short.pickle → leak.pickle - Tidemark</title>",
    );
    const same = await gpu([file("leak.pickle"), "-o", file("leak.pickle")]);
    expect([same.status, statSync(file("leak.pickle")).size > 1000]).toEqual([2, true]);
  });
});

test("two are compared, three are ranks", async () => {
  const { stdout } = await gpu([file("short.pickle"), file("leak.pickle")]);
  expect(stdout).toMatch(/\+44\.0 MiB +6\.00 MiB +50\.0 MiB {2}grew .*log_loss/);
  await json("gpu_diff", [file("short.pickle"), file("leak.pickle")]);
  const ranks = ["rank0.pickle", "rank1.pickle", "rank2.pickle"].map(file);
  const table = await gpu(ranks);
  expect(table.stdout.replace(/\s+/g, " ")).toMatch(
    /rank2\.pickle, device 0: requests more than the others \(48 %\): most of it in main \/srv\/train\/main\.py:24/,
  );
  await json("gpu_ranks", ranks);
  await json("gpu_ranks", [...ranks.slice(0, 2), "--ranks"]);
});

test("a message in a log, from a file and from a pipe, compared with a snapshot", async () => {
  const { status, stdout } = await gpu([
    "oom",
    file("train.log"),
    "--snapshot",
    file("oom.pickle"),
  ]);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^fragmentation {2}line 2, device 0, PyTorch 2\.5 or later$/m);
  expect(stdout).toMatch(/snapshot: event 200 of device 0: fragmentation there too/);
  const piped = await json<OomJson>("oom", ["oom"], { input: MESSAGE });
  expect(piped.events.map(({ kind, requestedBytes }) => [kind, requestedBytes])).toEqual([
    ["fragmentation", 200 * 2 ** 20],
  ]);
  const other = await json<OomJson>("oom", [
    "oom",
    file("train.log"),
    "--snapshot",
    file("leak.pickle"),
  ]);
  expect(other.events[0]?.snapshot).toMatch(/no such event/);
  const others = await gpu(["oom"], {
    input:
      "W tensorflow/core/common_runtime/bfc_allocator.cc:1] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.00GiB (rounded to 3221225472)requested by op A\nLimit: 8589934592\nInUse: 8489934592\nallocating 144.00 MiB on device 4: cudaMalloc failed: out of memory\n",
  });
  expect(others.stdout).toMatch(/device 0, tensorflow\n {2}requested 3\.00 GiB, pool 8\.00 GiB/);
  expect(others.stdout).toMatch(/device 4, llama\.cpp\n/);
  const none = await gpu(["oom", "-"], { input: "all is well\n" });
  expect([none.status, none.stdout]).toEqual([0, "No out-of-memory message in 1 lines.\n"]);
});

describe("gpu top", () => {
  test("without a driver: one line, and 4", async () => {
    const { status, stdout, stderr } = await gpu(["top"], {
      env: { PATH: `${folder}:${process.execPath.replace(/\/[^/]*$/, "")}` },
    });
    expect([status, stdout]).toEqual([4, ""]);
    expect(stderr).toMatch(
      /^tidemark: TM-E065 no NVIDIA driver answers here: nvidia-smi is not installed/,
    );
  });

  test("devices, processes and unreported memory", async () => {
    // The driver's own answers, as nvidia-smi prints them.
    const folderOfDriver = mkdtempSync(join(folder, "driver-"));
    const script = join(folderOfDriver, "nvidia-smi");
    writeFileSync(
      script,
      `#!/bin/sh\ncase "$1" in\n--query-gpu*) echo "0, GPU-aa, NVIDIA H100 80GB HBM3, 81559, 2048, 37, Disabled"; echo "1, GPU-bb, NVIDIA A100-SXM4-40GB, 40960, 1024, [N/A], Enabled";;\n*) echo "${process.pid}, GPU-aa, 1536"; echo "999999999, GPU-bb, [N/A]";;\nesac\n`,
    );
    chmodSync(script, 0o755);
    const env = { PATH: `${folderOfDriver}:${process.env.PATH}` };
    const { devices } = await json<GpuTopJson>("gpu_top", ["top"], { env });
    expect(
      devices.map(({ index, totalBytes, utilisation, mig, unlistedBytes }) => [
        index,
        totalBytes,
        utilisation,
        mig,
        unlistedBytes,
      ]),
    ).toEqual([
      [0, 81559 * 2 ** 20, 0.37, false, 512 * 2 ** 20],
      [1, 40960 * 2 ** 20, null, true, 1024 * 2 ** 20],
    ]);
    expect(devices[0]?.processes[0]).toMatchObject({
      pid: process.pid,
      deviceBytes: 1536 * 2 ** 20,
    });
    expect(devices[0]?.processes[0]?.rssBytes).toBeGreaterThan(2 ** 20);
    expect(devices[1]?.processes[0]).toMatchObject({ command: [], deviceBytes: null, rssBytes: 0 });
    const { stdout } = await gpu(["top"], { env });
    expect(stdout).toMatch(/^Device 0 {2}NVIDIA H100 80GB HBM3, 37 % busy$/m);
    expect(stdout).toMatch(/reserved by driver/);
  });
});

test.each([
  [
    [],
    "TM-E002 gpu needs <snapshot or pid>, as in: tidemark gpu snapshot.pickle; see tidemark gpu --help",
  ],
  [["nothing.pickle"], "TM-E003 no such snapshot: nothing.pickle"],
  [["a.pickle", "a.pickle"], "TM-E002 a snapshot is named twice"],
  [
    ["a", "b", "c", "-o", "x.html"],
    "TM-E002 a page shows one snapshot, or one before and one after",
  ],
  [["a", "b", "--ranks", "-o", "x.html"], "TM-E002 a page shows one snapshot"],
  [["oom", "nothing.log"], "TM-E003 no such log: nothing.log"],
  [["top", "--jsn"], "TM-E002 unknown option '--jsn'"],
])("gpu %j: %s", async (args, line) => {
  const { status, stdout, stderr } = await gpu(args);
  expect([status, stdout]).toEqual([2, ""]);
  expect(stderr.trim().split("\n").length).toBe(1);
  expect(stderr).toContain(line);
});

test.each(["oom", "top"])("gpu %s --help shows an example of itself", async (name) => {
  const { status, stdout } = await gpu([name, "--help"]);
  expect(status).toBe(0);
  expect(stdout).toMatch(new RegExp(`^Examples:\\n {2}\\$ tidemark gpu ${name}\\b`, "m"));
});
