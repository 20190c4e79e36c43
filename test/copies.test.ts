/** Bytes that memcpy and memmove copy (`--copies`), with real NumPy, torch and bytes. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { present } from "../src/model/base/present.js";
import type { LinesJson } from "../src/model/documents/documents.js";
import type { SummaryJson } from "../src/model/documents/summary_document.js";
import { COPIES_DOMAIN } from "../src/model/profile/profile.js";
import { openRecording } from "../src/record/index.js";
import { environment } from "./environment.js";
import { startPython } from "./python_program.js";
import { python, validate } from "./recorded_app.js";
import { execute, removeScratch, scratch, tidemark } from "./run.js";

const MIB = 2 ** 20;
const folder = scratch();
afterAll(removeScratch);

async function record(
  name: string,
  program: string,
  { interpreter = python, options = ["--copies"] } = {},
): Promise<string> {
  const file = join(folder, `${name}.py`);
  writeFileSync(file, program);
  const path = join(folder, `${name}.tidemark`);
  const words = ["run", ...options, "--quiet", "-f", "-o", path, "--", interpreter, file];
  const { status, stderr } = await execute([tidemark, ...words], { cwd: folder });
  expect(status, stderr).toBe(0);
  return path;
}

/** By function: copied MiB, at its lines. */
async function copiedIn(path: string): Promise<Record<string, number>> {
  const { stdout } = await execute([tidemark, "lines", path, "--json"]);
  const { lines } = validate(stdout, "lines") as unknown as LinesJson;
  const sums: Record<string, number> = {};
  for (const row of lines) {
    sums[row.function] = (sums[row.function] ?? 0) + (row.copiedBytes ?? 0) / MIB;
  }
  return sums;
}

/** Within five standard errors of sampling at a period of 1 MiB, copies of `each` MiB. */
function expectCopied(found: number | undefined, mib: number, each: number): void {
  const chance = 1 - Math.exp(-each);
  const error = Math.sqrt((mib * each * (1 - chance)) / chance);
  expect(Math.abs((found ?? 0) - mib)).toBeLessThan(5 * error + 0.5);
}

const BYTES = `
import collections
def whole(source):
    return bytes(source)
def slices(source):
    return [source[at:at + 65536] for at in range(0, len(source), 65536)]
def join(parts):
    return b"".join(parts)
def grow(target, part):
    target += part
source = bytearray(4 << 20)
for _ in range(8): whole(source)
for _ in range(8): parts = slices(source)
for _ in range(8): join(parts)
`;

test("bytes: by line, and only if they are counted", async () => {
  const path = await record("bytes", BYTES);
  const copied = await copiedIn(path);
  expectCopied(copied.whole, 32, 4);
  expectCopied(copied.slices, 32, 1 / 16);
  expectCopied(copied.join, 32, 1 / 16);
  const profile = openRecording(path).profileAt("end");
  expect(new Set(profile.copies.domain)).toEqual(new Set([COPIES_DOMAIN]));
  expect(profile.sites.domain.every((domain) => domain < COPIES_DOMAIN)).toBe(true);
  const { stdout } = await execute([tidemark, "summary", path, "--json"]);
  const { copied: total } = validate(stdout, "summary") as unknown as SummaryJson;
  const ofLines = Object.values(copied).reduce((sum, mib) => sum + mib, 0);
  expect((total?.bytes ?? 0) / MIB).toBeCloseTo(ofLines, 3);

  const plain = await record("plain", BYTES, { options: [] });
  expect(openRecording(plain).profileAt("end").copies).toHaveLength(0);
  const lines = await execute([tidemark, "lines", plain]);
  expect(lines.stdout).not.toContain("COPIED");
});

test("the report carries them, for the lines of the source", async () => {
  const path = await record("reported", BYTES);
  const { status, stderr } = await execute([tidemark, "report", path, "-f", "-o", `${path}.html`]);
  expect(status, stderr).toBe(0);
});

test("lines: the highest live bytes of a line at any snapshot, not only at the program's peak", async () => {
  const path = await record(
    "peaks",
    `import time
def early():
    return bytearray(40 << 20)
def late():
    return bytearray(90 << 20)
first = early(); time.sleep(4); del first
second = late(); time.sleep(0.5)
`,
    { options: [] },
  );
  const { stdout } = await execute([tidemark, "lines", path, "--json"]);
  const { lines } = validate(stdout, "lines") as unknown as LinesJson;
  const row = lines.find((line) => line.function === "early");
  expect(row).toMatchObject({ liveBytes: 0, liveBytesAtPeak: 0 });
  expect(row?.peakBytes).toBeGreaterThan(39 * MIB);
  const late = lines.find((line) => line.function === "late");
  expect(late?.peakBytes).toBe(late?.liveBytesAtPeak);
});

test.skipIf(environment.packagesPython === null)(
  "NumPy: whole copies, not strided ones",
  async () => {
    const program = `
import numpy as np
def copy(array):
    return array.copy()
def strided(array):
    return np.ascontiguousarray(array[::2])
def to_bytes(array):
    return array.tobytes()
array = np.ones(1 << 20)
for _ in range(6): copy(array); strided(array); to_bytes(array)
`;
    const copied = await copiedIn(
      await record("arrays", program, { interpreter: present(environment.packagesPython) }),
    );
    expectCopied(copied.copy, 48, 8);
    expectCopied(copied.to_bytes, 48, 8);
    expect(copied.strided ?? 0).toBe(0);
  },
);

test.skipIf(environment.torchPython === null)(
  "torch: what NumPy and bytes copy of tensors",
  async () => {
    const program = `
import torch
def to_array(tensor):
    return tensor.numpy().copy()
def to_bytes(tensor):
    return tensor.numpy().tobytes()
tensor = torch.ones(1024, 1024)
for _ in range(8): to_array(tensor); to_bytes(tensor)
`;
    const copied = await copiedIn(
      await record("tensors", program, { interpreter: present(environment.torchPython) }),
    );
    expectCopied(copied.to_array, 32, 4);
    expectCopied(copied.to_bytes, 32, 4);
  },
);

describe("attached", () => {
  test("copies are counted, and no pointer of ours stays", async () => {
    const program = await startPython(
      { path: python },
      `import threading, time
source = bytearray(1 << 20)
ended = threading.Event()
def work():
    while not ended.is_set():
        bytes(source)
        time.sleep(0.005)
worker = threading.Thread(target=work); worker.start()
def ours():
    """Pointers into the agent's code, in the data of all other loaded objects."""
    from array import array
    spans = []
    for line in open("/proc/self/maps"):
        words = line.split(None, 5)
        start, end = (int(each, 16) for each in words[0].split("-"))
        spans.append((start, end, words[1], words[5].strip() if len(words) > 5 else ""))
    code = [(start, end) for start, end, mode, name in spans if "tidemark" in name and "x" in mode]
    found = 0
    with open("/proc/self/mem", "rb", 0) as memory:
        for start, end, mode, name in spans:
            if name.startswith("/") and "tidemark" not in name and mode[0] == "r" and (".so" in name or "python" in name):
                memory.seek(start)
                words = array("Q", memory.read(end - start))
                found += sum(1 for word in words if code and any(low <= word < high for low, high in code))
    return {"loaded": len(code) > 0, "pointers": found}
say({})
say(ours())
ended.set(); worker.join()
copy = bytes(source)
say({"equal": copy == source})
`,
    );
    try {
      const path = join(folder, "attached.tidemark");
      const words = ["attach", String(program.pid), "--copies", "--for", "2s", "--quiet", "-f"];
      const { status, stderr } = await execute([tidemark, ...words, "-o", path]);
      expect(status, stderr).toBe(0);
      expect((await copiedIn(path)).work).toBeGreaterThan(20);
      expect(await program.go()).toEqual({ loaded: true, pointers: 0 });
      expect(await program.go()).toEqual({ equal: true });
    } finally {
      await program.stop();
    }
  });
});
