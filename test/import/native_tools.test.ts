/** Files of Valgrind and heaptrack, written by the tools themselves, and of pprof. */
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { LinesJson } from "../../src/model/documents/documents.js";
import { commandHere } from "../command_here.js";
import { environment } from "../environment.js";
import { execute, programs, tidemark } from "../run.js";
import { importOf, jsonOf, rowAt, run } from "./imported.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-import-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const { cc, valgrind, heaptrack, go } = environment.tools;
const program = join(folder, "imported");
/** Blocks of 10,000 to 100,000 bytes; the last five are kept. */
const [ALLOCATED, KEPT] = [550_000, 400_000];
const SITE = "imported.c:8";
const COPY = "imported.c:9";

describe.skipIf(!cc || !valgrind)("files of Valgrind", () => {
  beforeAll(() =>
    run([present(cc), "-g", "-O0", "-fno-builtin", "-o", program, join(programs, "imported.c")]),
  );
  const under = (...options: string[]) => run([present(valgrind), ...options, program]);

  test("massif: the peak by stack, and the heap over its snapshots", async () => {
    await under("--tool=massif", `--massif-out-file=${join(folder, "massif.out")}`);
    const imported = await importOf(folder, "massif.out");
    expect(rowAt(imported, SITE).liveBytesAtPeak).toBe(ALLOCATED);
    expect(imported.summary.imported?.unknown).toEqual([
      "live",
      "allocated",
      "objects",
      "rss",
      "time",
      "python",
    ]);
  });

  test("memcheck: blocks that are lost at the end", async () => {
    const file = join(folder, "memcheck.xml");
    await under("--leak-check=full", "--show-leak-kinds=all", "--xml=yes", `--xml-file=${file}`);
    const imported = await importOf(folder, "memcheck.xml");
    expect(rowAt(imported, SITE)).toMatchObject({ liveBytes: KEPT, function: "keep" });
    expect(imported.summary.sites[0]?.liveObjects).toBe(5);
  });

  test("DHAT: live, peak and allocated bytes; in mode copy, copied bytes by line", async () => {
    await under("--tool=dhat", `--dhat-out-file=${join(folder, "dhat.json")}`);
    const heap = await importOf(folder, "dhat.json");
    expect(rowAt(heap, SITE)).toMatchObject({
      liveBytes: KEPT,
      liveBytesAtPeak: ALLOCATED,
      allocatedBytes: ALLOCATED,
    });
    await under("--tool=dhat", "--mode=copy", `--dhat-out-file=${join(folder, "copied.json")}`);
    const copied = await importOf(folder, "copied.json");
    expect(rowAt(copied, COPY).copiedBytes).toBe(ALLOCATED);
    expect(copied.summary.imported?.unknown).toContain("live");
  });

  test("DHAT: the events of mode ad-hoc are not imported as bytes", async () => {
    await under("--tool=dhat", "--mode=ad-hoc", `--dhat-out-file=${join(folder, "events.json")}`);
    await expect(importOf(folder, "events.json")).rejects.toThrow(/ad-hoc events.*not bytes/s);
  });

  test.skipIf(!heaptrack)("heaptrack: live, peak and allocated bytes", async () => {
    await run([present(heaptrack), "-o", join(folder, "heaptrack"), program]);
    const imported = await importOf(folder, "heaptrack.zst");
    expect(rowAt(imported, SITE)).toMatchObject({
      liveBytes: KEPT,
      liveBytesAtPeak: ALLOCATED,
      allocatedBytes: ALLOCATED,
    });
    expect(imported.summary.imported?.unknown).toEqual(["python"]);
  });

  test.skipIf(!heaptrack)("heaptrack --raw: the command of the message converts it", async () => {
    const place = join(folder, "it's a folder");
    mkdirSync(place);
    // heaptrack itself cannot write to such a name.
    await run([present(heaptrack), "--raw", "-o", join(folder, "uninterpreted"), program]);
    const raw = join(place, "with spaces.raw.zst");
    renameSync(join(folder, "uninterpreted.raw.zst"), raw);
    const { status, stderr } = await execute([tidemark, "import", raw]);
    expect([status, stderr]).toEqual([2, expect.stringMatching(/TM-E016.*without symbols/)]);
    const [, convert = "", converted = ""] =
      /recorded it: (.*), then: tidemark import (.*)\n/.exec(stderr) ?? [];
    await run(["sh", "-c", convert]);
    await run(["sh", "-c", `${tidemark} import ${converted}`]);
    const [recording = ""] = readdirSync(place).filter((name) => name.endsWith(".tidemark"));
    const { lines } = await jsonOf<LinesJson>("lines", join(place, recording));
    expect(lines.find(({ line }) => line === 8)?.liveBytes).toBe(KEPT);
  });
});

describe.skipIf(!valgrind)("text of Valgrind", () => {
  test.each([
    ["massif", "--massif-out-file=/dev/null", /massif or ms_print.*massif\.out\.PID/],
    ["dhat", "--dhat-out-file=/dev/null", /Valgrind DHAT.*dhat\.out\.PID/],
    ["memcheck", "--leak-check=full", /log of Valgrind memcheck.*--xml=yes/],
    ["callgrind", "--callgrind-out-file=/dev/null", /callgrind.*not memory/],
  ])("%s: what it is, and which file to import", async (tool, option, expected) => {
    const { stderr } = await run(["valgrind", `--tool=${tool}`, option, "/bin/true"]);
    const file = join(folder, `${tool}.txt`);
    writeFileSync(file, stderr);
    const refused = await commandHere("import", file, "-f");
    expect([refused.status, refused.stderr]).toEqual([2, expect.stringMatching(expected)]);
  });
});

describe.skipIf(!go)("files of pprof", () => {
  test("a heap profile of Go: live and allocated bytes", async () => {
    const file = join(folder, "heap.pb.gz");
    await run([present(go), "run", join(programs, "held.go"), file], {
      cwd: folder,
      env: { GOCACHE: join(folder, "cache"), GOFLAGS: "-mod=mod", HOME: folder },
    });
    const imported = await importOf(folder, "heap.pb.gz");
    const row = rowAt(imported, "held.go:13");
    expect(row.function).toBe("main.hold");
    expect(row.liveBytes).toBeGreaterThanOrEqual(32 << 20);
    expect(row.liveBytes).toBeLessThan(33 << 20);
    expect(imported.summary.imported?.unknown).toEqual(["peak", "rss", "time", "python"]);
  });
});
