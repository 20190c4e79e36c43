/** Logs that are packed, damaged, or not UTF-8. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { readOomLog } from "../oom_log.js";
import { logLines } from "./log_lines.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-log-bytes-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function read(bytes: Uint8Array) {
  const path = join(folder, "log");
  writeFileSync(path, bytes);
  const { events, limits, lines } = await readOomLog(path, logLines(path));
  return { lines: events.map(({ line }) => line), limits, count: lines };
}

const MESSAGE =
  "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 24.00 GiB total capacity; 14.00 GiB already allocated; 512.00 MiB free; 22.00 GiB reserved in total by PyTorch)";
const STEPS = Array.from({ length: 20_000 }, (_, step) => `step ${step} loss ${Math.sin(step)}`);
const DAMAGED = [expect.stringMatching(/^the \.gz is damaged \(.+\)/)];

test("a truncated gzip file yields what is there and is reported as truncated", async () => {
  const packed = gzipSync([MESSAGE, ...STEPS].join("\n"));
  const { lines, limits, count } = await read(packed.subarray(0, packed.length >> 1));
  expect(lines).toEqual([1]);
  expect(limits).toEqual(DAMAGED);
  expect(count).toBeGreaterThan(5000);
});

test.each([
  ["a few lines", 10],
  ["many", 20_000],
])("a gzip file with trailing data yields all of its lines: %s", async (_, steps) => {
  const packed = gzipSync([...STEPS.slice(0, steps), MESSAGE].join("\n"));
  expect(await read(Buffer.concat([packed, Buffer.from("no pack")]))).toEqual({
    lines: [steps + 1],
    limits: DAMAGED,
    count: steps + 1,
  });
});

test("concatenated gzip files are one log", async () => {
  const packed = Buffer.concat([gzipSync("a\n"), gzipSync(`${MESSAGE}\n`)]);
  expect(await read(packed)).toEqual({ lines: [2], limits: [], count: 2 });
});

test("a gzip file from which nothing can be read is not a log", async () => {
  await expect(read(gzipSync(MESSAGE).subarray(0, 12))).rejects.toMatchObject({ id: "TM-E004" });
});

const UTF16 = Buffer.from(`start\r\n${MESSAGE}\r\n`, "utf16le");

test.each([
  ["UTF-16 as PowerShell writes it", Buffer.concat([Buffer.from([0xff, 0xfe]), UTF16])],
  ["the other way round", Buffer.concat([Buffer.from([0xff, 0xfe]), UTF16]).swap16()],
  ["without a mark", UTF16],
  ["packed", gzipSync(Buffer.concat([Buffer.from([0xff, 0xfe]), UTF16]))],
])("%s", async (_, bytes) => {
  expect(await read(bytes)).toEqual({ lines: [2], limits: [], count: 2 });
});

test("zeros that a crash left in the text are skipped; a file of mostly zeros is reported", async () => {
  const sparse = Buffer.concat([Buffer.alloc(5000), Buffer.from(MESSAGE)]);
  expect((await read(sparse)).lines).toEqual([1]);
  const { limits } = await read(Buffer.concat([Buffer.alloc(200), Buffer.from("\x01\x02\n")]));
  expect(limits).toEqual([expect.stringMatching(/does not look like text/)]);
});
