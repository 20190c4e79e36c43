/** Files of TensorFlow's profiler: test/data/import/README.md names the program and versions that wrote them. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import type { SummaryJson } from "../../src/model/documents/summary_document.js";
import { execute, repository, tidemark } from "../run.js";
import { diffOf, type Imported, importOf, jsonOf, runHere } from "./imported.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-tensorflow-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const data = join(repository, "test/data/import");
const TRACE = "tensorflow.xplane.pb.gz";
const MEMORY = "tensorflow_memory_profile.json.gz";
for (const name of [TRACE, MEMORY]) {
  copyFileSync(join(data, name), join(folder, name));
}
const unpacked = (name: string) => gunzipSync(readFileSync(join(data, name)));
const memory = JSON.parse(unpacked(MEMORY).toString("utf8"));
const [allocator, { profileSummary }] = Object.entries(memory.memoryProfilePerAllocator)[0] as [
  string,
  { profileSummary: { peakStats: Record<string, string> } },
];
/** The peak as TensorFlow's own tool computes it from the trace. */
const peakBytes =
  Number(profileSummary.peakStats.heapAllocatedBytes) +
  Number(profileSummary.peakStats.stackReservedBytes);

describe("TensorFlow's profiler", () => {
  test("the memory profile: its blocks at the peak are the peak", async () => {
    const { summary } = await importOf(folder, MEMORY);
    expect(summary.sites.reduce((sum, site) => sum + site.liveBytesAtPeak, 0)).toBe(peakBytes);
    expect(summary.imported).toMatchObject({ tool: "TensorFlow memory profile" });
    expect(summary.imported?.unknown).toEqual(
      expect.arrayContaining(["live", "allocated", "rss", "time"]),
    );
  });

  test("the trace: the same peak, by operation, and what the operations allocated", async () => {
    const { summary } = await importOf(folder, TRACE);
    expect(summary.sites.reduce((sum, site) => sum + site.liveBytesAtPeak, 0)).toBe(peakBytes);
    const named = summary.sites.map(({ stack }) => stack[0]?.function ?? "");
    expect(named).toContain("(allocated before the trace)");
    expect(named.some((name) => /^adam\/Sqrt/.test(name))).toBe(true);
    const before = summary.sites.find(({ stack }) => stack[0]?.function.startsWith("(allocated"));
    expect(before?.allocatedBytes).toBe(0);
    expect(summary.imported?.unknown).toEqual(["rss", "python"]);
    expect(summary.window.endMs).toBeGreaterThan(summary.window.startMs);
  });

  test("diff --by compares the groups by the figure that both files know", async () => {
    const [memory, trace] = [await importOf(folder, MEMORY), await importOf(folder, TRACE)];
    const groupsAtPeak = async ({ recording }: Imported) => {
      const summary = await jsonOf<SummaryJson>("summary", recording, "--by", "region");
      return new Map(summary.groups?.map((each) => [each.group, each.liveBytesAtPeak]));
    };
    const [a, b] = [await groupsAtPeak(memory), await groupsAtPeak(trace)];
    const compared = await diffOf(memory.recording, trace.recording, "--by", "region");
    expect(compared.figure).toBe("peak");
    const groups = compared.groups ?? [];
    expect(groups.map(({ group }) => group).sort()).toEqual(
      [...new Set([...a.keys(), ...b.keys()])].sort(),
    );
    for (const { group, liveBytesA, liveBytesB, growthBytes } of groups) {
      expect([liveBytesA, liveBytesB]).toEqual([a.get(group) ?? 0, b.get(group) ?? 0]);
      expect(growthBytes).toBe(liveBytesB - liveBytesA);
    }
    const sum = groups.reduce((total, { liveBytesB }) => total + liveBytesB, 0);
    expect([sum, compared.totals.liveBytesB]).toEqual([peakBytes, peakBytes]);
    const text = await runHere("diff", memory.recording, trace.recording, "--by", "region");
    expect(text).toMatch(/GROWTH +± +A +B +REGION\n/);
  });

  test("by allocator", async () => {
    const { recording } = await importOf(folder, TRACE);
    const { stdout, status } = await execute([tidemark, "summary", recording, "--by", "device"]);
    expect([status, stdout.includes(allocator)], stdout).toEqual([0, true]);
  });
});

describe("files that are cut off, changed or without memory", () => {
  async function outcomeOf(name: string, content: Uint8Array | string) {
    const file = join(folder, name);
    writeFileSync(file, content);
    return await execute([tidemark, "import", file, "-f"]);
  }

  test.each([
    ["half a trace", unpacked(TRACE).subarray(0, 40_000), /TM-E005.*cut off/],
    ["half a profile", unpacked(MEMORY).subarray(0, 40_000), /TM-E005.*not complete JSON/],
    ["a profile of nothing", '{"memoryProfilePerAllocator": {}}', /TM-E005.*no allocator/],
    [
      "a trace without memory",
      // XSpace { planes { name: "/host:CPU", padded with an unknown plane } }
      Buffer.concat([
        Buffer.from([0x0a, 0x0b, 0x12, 0x09]),
        Buffer.from("/host:CPU"),
        Buffer.from([0x0a, 0x3c, 0x12, 0x3a]),
        Buffer.alloc(0x3a, 0x61),
      ]),
      /TM-E014.*without memory events.*TF_CPU_ALLOCATOR_USE_BFC/,
    ],
  ])("%s", async (name, content, message) => {
    const { status, stderr } = await outcomeOf(name.replaceAll(" ", "_"), content);
    expect([status, stderr.trim().split("\n").length], stderr).toEqual([2, 1]);
    expect(stderr).toMatch(message);
  });

  test("odd values: one line, or for changed bytes a recording, never a crash", async () => {
    const odd = {
      memoryProfilePerAllocator: {
        a: {
          activeAllocations: [
            null,
            1,
            { snapshotIndex: "9", specialIndex: "-1" },
            { numOccurrences: "-5" },
          ],
          memoryProfileSnapshots: [{ activityMetadata: { allocationBytes: "1e400", tfOpName: 7 } }],
        },
        b: null,
      },
    };
    const { status, stderr } = await outcomeOf("odd.json", JSON.stringify(odd));
    expect([status, stderr], stderr).toEqual([
      2,
      expect.stringMatching(/TM-E005.*impossible|TM-E005.*number/),
    ]);
    const trace = unpacked(TRACE);
    for (let seed = 1; seed <= 8; seed++) {
      const changed = Buffer.from(trace);
      for (let count = 0; count < 20; count++) {
        changed[64 + ((seed * 7919 + count * 104_729) % (changed.length - 64))] =
          (seed * 31 + count) % 256;
      }
      const outcome = await outcomeOf("changed.pb", changed);
      expect([0, 2], outcome.stderr).toContain(outcome.status);
      expect(outcome.stderr).not.toMatch(/TM-E001/);
    }
  });
});
