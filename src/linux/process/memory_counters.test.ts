import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { memoryRlimitsOf, readGroupCounters, readPressure } from "./memory_counters.js";

const scratch = mkdtempSync(join(tmpdir(), "tidemark-counters-"));
afterAll(() => rmSync(scratch, { recursive: true }));

function group(name: string, files: Readonly<Record<string, string>>): string {
  const directory = join(scratch, name);
  mkdirSync(directory);
  for (const [file, text] of Object.entries(files)) {
    writeFileSync(join(directory, file), text);
  }
  return directory;
}

describe("counters of a control group", () => {
  test("version 2: memory.events", () => {
    const directory = group("v2", {
      "memory.current": "4096\n",
      "memory.max": "8192\n",
      "memory.peak": "8192\n",
      "memory.events": "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n",
    });
    expect(readGroupCounters({ version: 2, directories: [directory] })).toEqual([
      { directory, limitBytes: 8192, usedBytes: 4096, peakBytes: 8192, kills: 1, failures: 12 },
    ]);
  });

  test("version 1: memory.oom_control and memory.failcnt; a group above without a limit", () => {
    const directory = group("v1", {
      "memory.usage_in_bytes": "4096\n",
      "memory.limit_in_bytes": "9223372036854771712\n",
      "memory.max_usage_in_bytes": "4097\n",
      "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
      "memory.failcnt": "7\n",
    });
    expect(
      readGroupCounters({ version: 1, directories: [directory, join(scratch, "none")] }),
    ).toEqual([
      { directory, limitBytes: null, usedBytes: 4096, peakBytes: 4097, kills: 3, failures: 7 },
    ]);
  });
});

test("rlimits of memory are the soft ones", () => {
  expect(
    memoryRlimitsOf(
      "Limit                     Soft Limit           Hard Limit           Units     \n" +
        "Max data size             unlimited            unlimited            bytes     \n" +
        "Max address space         536870912            unlimited            bytes     \n",
    ),
  ).toEqual({ addressSpaceBytes: 536870912, dataBytes: null });
});

test("pressure is the share of the last ten seconds in which some process waited", () => {
  const text =
    "some avg10=12.50 avg60=3.00 avg300=1.00 total=82372\nfull avg10=9.00 avg60=0 avg300=0 total=1\n";
  const read = (name: string, files: Record<string, string>) =>
    readPressure({ version: 2, directories: [group(name, files)] });
  expect(read("waiting", { "memory.pressure": text })).toBe(0.125);
  expect(read("idle", { "memory.pressure": text.replace("12.50", "0.00") })).toBe(0);
  expect(read("damaged", { "memory.pressure": "some\n" })).toBeNull();
});
