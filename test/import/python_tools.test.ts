/** Files of Python's memory profilers, written by the tools themselves, imported and compared with what they report. */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import { openRecording } from "../../src/record/index.js";
import { commandHere } from "../command_here.js";
import { environment } from "../environment.js";
import { execute, programs, repository, tidemark } from "../run.js";
import { diffOf, importOf, rowAt, run } from "./imported.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-import-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const program = join(programs, "imported.py");
const MIB = 2 ** 20;
/** The 30,000 bytearrays that the program keeps. */
const KEPT = 30_000 * 1000;

const TRACED = `import sys, tracemalloc
tracemalloc.start(8)
sys.argv = [sys.argv[1], *sys.argv[2:]]
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"), {"__name__": "__main__"})
tracemalloc.take_snapshot().dump(sys.argv[1])
`;

/** What memray itself reports of a file: bytes and blocks at the end and at the peak. */
const MEMRAY_TOTALS = `import json, sys, memray
reader = lambda: memray.FileReader(sys.argv[1])
total = lambda records: [sum(r.size for r in records), sum(r.n_allocations for r in records)]
print(json.dumps([total(list(reader().get_leaked_allocation_records())),
    total(list(reader().get_high_watermark_allocation_records()))]))
`;

/** A method, a function in a function, and code that a library runs for a line: tools name each differently. */
const NAMED = `import json
class Store:
    def __init__(self):
        self.rows = {}
    def fill(self, n):
        for i in range(n):
            self.rows[i] = bytearray(100_000)
    @staticmethod
    def parse(texts):
        def inner(text):
            return json.loads(text)
        return [inner(text) for text in texts]
store = Store()
store.fill(200)
parsed = Store.parse(['"' + "x" * 900_000 + '"' for _ in range(20)])
`;

/** Measured by Tidemark in a process in which memray is already active, or becomes so. */
const UNDER_MEMRAY = `import sys, tidemark, memray
def fill():
    return [bytearray(100_000) for _ in range(100)]
def within():
    with memray.Tracker(sys.argv[1]):
        return fill()
measured = tidemark.measure(within if len(sys.argv) > 1 else fill)
print(measured.problem, measured.growth_bytes, measured.allocated_bytes)
try:
    tidemark.start()
    print("started")
except RuntimeError as error:
    print(error)
`;

describe.skipIf(environment.packagesPython === null)("files of Python tools", () => {
  const python = present(environment.packagesPython);

  test("diff lists a line once, whichever tool named its function and file", async () => {
    writeFileSync(join(folder, "named.py"), NAMED);
    const here = { cwd: folder };
    const own = join(folder, "named.tidemark");
    await run([tidemark, "run", "--python", python, "-o", own, "named.py"], here);
    await run([tidemark, "export", own, "--format", "pprof"], here);
    await run([python, "-m", "memray", "run", "-f", "-o", "named.bin", "named.py"], here);
    await run([python, "-m", "scalene", "run", "-o", "named.json", "named.py"], here);
    for (const file of ["named.bin", "named.json", "named.pb.gz"]) {
      const { recording } = await importOf(folder, file);
      const { sites } = await diffOf(recording, own);
      const places = sites.filter(({ stack: [leaf] }) => leaf?.file.endsWith("named.py"));
      const line = places.filter(({ stack: [leaf] }) => leaf?.line === 7);
      const [filled] = line.toSorted((a, b) => b.liveBytesB - a.liveBytesB);
      expect([file, filled?.stack[0]?.function]).toEqual([file, "Store.fill"]);
      expect(filled?.liveBytesA).toBeGreaterThan(10e6);
      expect(filled?.liveBytesB).toBeGreaterThan(10e6);
      // No line of the program is listed under a bare name and a qualified one.
      const names = new Map<number, Set<string>>();
      for (const { stack } of sites) {
        for (const frame of stack.filter(({ file }) => file.endsWith("named.py"))) {
          names.set(frame.line, (names.get(frame.line) ?? new Set()).add(frame.function));
        }
      }
      expect([...names.values()].filter(({ size }) => size > 1)).toEqual([]);
    }
    const { limits } = await diffOf(join(folder, "named.bin.tidemark"), own);
    expect(limits.join()).not.toMatch(/different commands/);
  });

  test("under memray, measure and start report that they cannot see allocations, never 0 bytes", async () => {
    const file = join(folder, "under.py");
    writeFileSync(file, UNDER_MEMRAY);
    const env = { PYTHONPATH: join(repository, "python") };
    const out = join(folder, "under.bin");
    const covered = /only RSS was measured: another tool \(such as memray\).* None None\n/;
    for (const options of [[], ["--native"], ["--trace-python-allocators"]]) {
      const memray = [python, "-m", "memray", "run", ...options, "-fqo", out, file];
      const { stdout } = await run(memray, { env });
      expect(stdout).toMatch(covered);
      expect(stdout.split("\n")[1]).toMatch(/^another tool \(such as memray\)/);
    }
    const { stdout } = await run([python, file, join(folder, "within.bin")], { env });
    expect(stdout).toMatch(covered);
    expect(stdout).toMatch(/\nstarted\n/);
  });

  test("tracemalloc: live bytes by line; the rest is unknown, and diff compares two snapshots", async () => {
    writeFileSync(join(folder, "traced.py"), TRACED);
    await run([python, join(folder, "traced.py"), program, join(folder, "a.pickle")]);
    const imported = await importOf(folder, "a.pickle");
    const row = rowAt(imported, "imported.py:9");
    expect(row.liveBytes).toBeGreaterThan(KEPT);
    expect(row.liveBytes).toBeLessThan(KEPT * 1.2);
    expect(imported.summary.imported).toEqual({
      tool: "tracemalloc",
      file: "a.pickle",
      precision: "exact",
      unknown: ["peak", "allocated", "rss", "time"],
    });
    const { stdout } = await run([tidemark, "summary", imported.recording]);
    expect(stdout).toMatch(/RSS +unknown/);
    expect(stdout).toMatch(/Live +peak unknown · end \d/);
    expect(stdout).toMatch(/Allocated +unknown/);
    expect((await run([tidemark, "lines", imported.recording])).stdout).toMatch(/unknown +unknown/);
    copyFileSync(join(folder, "a.pickle"), join(folder, "b.pickle"));
    const other = await importOf(folder, "b.pickle");
    const { totals } = await diffOf(imported.recording, other.recording);
    expect(totals.growthBytes).toBe(0);
  });

  test.each([
    ["all allocations", []],
    ["totals only", ["--aggregate"]],
    ["native frames", ["--native"]],
    ["Python's allocators", ["--trace-python-allocators"]],
    ["both", ["--trace-python-allocators", "--native"]],
  ])("memray, %s: live and peak bytes as memray reports them", async (_name, options) => {
    const file = join(folder, "memray.bin");
    await run([python, "-m", "memray", "run", ...options, "-fo", file, program]);
    writeFileSync(join(folder, "totals.py"), MEMRAY_TOTALS);
    const { stdout } = await run([python, join(folder, "totals.py"), file]);
    const [[live, objects], [peak]] = JSON.parse(stdout);
    const { summary } = await importOf(folder, "memray.bin");
    expect(summary.target.command).toEqual([program]);
    const sum = (of: (site: (typeof summary.sites)[number]) => number) =>
      summary.sites.reduce((total, site) => total + of(site), 0);
    expect(sum((site) => site.liveBytes)).toBe(live);
    if (options[0] !== "--aggregate") {
      // In a file of totals, memray's reader counts several mappings of a stack as one.
      expect(sum((site) => site.liveObjects)).toBe(objects);
    }
    expect(sum((site) => site.liveBytesAtPeak)).toBe(peak);
    expect(summary.rss.peakBytes).toBeGreaterThan(120e6);
    const unsplit = options.includes("--trace-python-allocators") ? [] : ["python"];
    const allocated = options[0] === "--aggregate" ? ["allocated"] : [];
    expect(summary.imported?.unknown).toEqual([...allocated, ...unsplit]);
    if (unsplit.length > 0) {
      const lines = await run([tidemark, "lines", join(folder, "memray.bin.tidemark")]);
      expect(lines.stdout).toMatch(/PYTHON[\s\S]*MiB +unknown +\w/);
    }
  });

  test.each([11, 12])("memray's format %d, of an older memray", async (version) => {
    const name = `memray-${version}.bin`;
    copyFileSync(join(repository, "test/data/import", name), join(folder, name));
    const imported = await importOf(folder, name);
    const row = rowAt(imported, "imported.py:9");
    expect(row.liveBytes).toBeGreaterThan(KEPT);
    expect(row.liveBytes).toBeLessThan(KEPT * 1.1);
    expect(rowAt(imported, "imported.py:14").liveBytesAtPeak).toBeGreaterThanOrEqual(120e6);
    expect(imported.summary.imported?.tool).toBe(`memray (format ${version})`);
  });

  test("memory_profiler: RSS over time and the calls of functions; nothing by line", async () => {
    const marked = join(folder, "marked.py");
    writeFileSync(
      marked,
      "import time\n@profile\ndef load():\n    block = bytearray(50_000_000)\n    time.sleep(0.4)\nload()\n",
    );
    const mprof = join(dirname(python), "mprof");
    await run([mprof, "run", "-o", join(folder, "mprof.dat"), marked]);
    const imported = await importOf(folder, "mprof.dat");
    expect(imported.summary.rss.peakBytes).toBeGreaterThan(50e6);
    expect(imported.summary.imported?.unknown).toEqual([
      "live",
      "peak",
      "allocated",
      "objects",
      "python",
    ]);
    expect(imported.lines).toEqual([]);
    const { stdout } = await run([tidemark, "summary", imported.recording]);
    expect(stdout).toMatch(/Live +unknown/);
    expect(stdout).toMatch(
      /RSS changed during calls .*__main__\.load \+[\d.]+ [KM]?i?B \(1 call\)/,
    );
    // The same file again: mprof adds to it.
    await run([mprof, "run", "-o", join(folder, "mprof.dat"), marked]);
    const again = await importOf(folder, "mprof.dat");
    expect(again.summary.window.startMs).toBeGreaterThan(imported.summary.window.endMs);
    const limits = again.summary.limits.join("\n");
    expect(limits).toMatch(/contains 2 runs, .*\n.*__main__\.load .* \(1 call\)/);
  });

  test("memory_profiler: the second of two runs within a second has only its own calls", async () => {
    const call = (start: number) => `FUNC __main__.load 20.0 ${start} 70.0 ${start + 0.4} 0\n`;
    const readings = (start: number) =>
      `CMDLINE python marked.py\nMEM 20.0 ${start}\nMEM 70.0 ${start + 0.4}\nMEM 0.0 ${start + 0.5}\n`;
    writeFileSync(
      join(folder, "quick.dat"),
      call(1000) + readings(1000) + call(1000.6) + readings(1000.6),
    );
    const { summary } = await importOf(folder, "quick.dat");
    expect(summary.window).toMatchObject({ startMs: 1_000_600, endMs: 1_001_000 });
    expect(summary.limits.join()).toMatch(/contains 2 runs, .*__main__\.load .* \(1 call\)/);
  });

  test("text and pages that tools print: one line with what they are and which file to import", async () => {
    const file = (name: string) => join(folder, name);
    const refused = async (name: string, content: string): Promise<string> => {
      writeFileSync(file(name), content);
      const { status, stderr } = await commandHere("import", file(name), "-f");
      expect([name, status, stderr.trim().split("\n").length]).toEqual([name, 2, 1]);
      return stderr;
    };
    writeFileSync(
      file("table.py"),
      "@profile\ndef load():\n    return bytearray(9_000_000)\nload()\n",
    );
    const table = await run([python, "-m", "memory_profiler", file("table.py")]);
    expect(await refused("table.txt", table.stdout)).toMatch(
      /that memory_profiler printed.*mprof run/,
    );
    await run([python, "-m", "memray", "run", "-q", "-f", "-o", file("text.bin"), program]);
    for (const report of ["summary", "stats"]) {
      const { stdout } = await run([python, "-m", "memray", report, file("text.bin")]);
      expect(await refused(`${report}.txt`, stdout)).toMatch(/memray.*import .*\.bin/);
    }
    await run([python, "-m", "memray", "table", "-f", "-o", file("table.html"), file("text.bin")]);
    const page = await commandHere("import", file("table.html"), "-f");
    expect([page.status, page.stderr]).toEqual([
      2,
      expect.stringMatching(/a page that memray wrote/),
    ]);
    const statistics = `import tracemalloc\ntracemalloc.start()\nkept = [bytes(1000) for _ in range(99)]
for each in tracemalloc.take_snapshot().statistics("lineno"): print(each)`;
    const { stdout } = await run([python, "-c", statistics]);
    expect(await refused("statistics.txt", stdout)).toMatch(/that tracemalloc printed.*dump\("app/);
    const bin = await commandHere("summary", file("text.bin"));
    expect(bin.stderr).toMatch(/TM-E007.* it is a file of memray; import it: tidemark import /);
  });

  test("scalene: allocated bytes, own peak and copied bytes by line; diff compares allocated bytes", async () => {
    const file = join(folder, "scalene.json");
    await run([python, "-m", "scalene", "run", "-o", file, program], { cwd: folder });
    const imported = await importOf(folder, "scalene.json");
    const row = rowAt(imported, "imported.py:14");
    expect(row.allocatedBytes).toBeGreaterThan(500e6);
    expect(row.allocatedBytes).toBeLessThan(700e6);
    expect(row.peakBytes).toBeGreaterThan(5e6);
    expect(row.copiedBytes).toBeGreaterThanOrEqual(0);
    expect(row.pythonShare).toBeGreaterThan(0.9);
    copyFileSync(file, join(folder, "scalene2.json"));
    const other = await importOf(folder, "scalene2.json");
    expect(await diffOf(imported.recording, other.recording)).toMatchObject({
      figure: "allocated",
    });
    expect((await run([tidemark, "lines", imported.recording])).stdout).toMatch(/OWN PEAK +COPIED/);
  });

  test("speedscope of memray: --value names its bytes", async () => {
    const bin = join(folder, "transformed.bin");
    await run([python, "-m", "memray", "run", "-f", "-o", bin, program]);
    const file = join(folder, "memray.speedscope.json");
    await run([python, "-m", "memray", "transform", "speedscope", "-f", "-o", file, bin]);
    const { status, stderr } = await execute([tidemark, "import", file]);
    expect([status, stderr]).toEqual([2, expect.stringMatching(/--value live, peak or allocated/)]);
    const imported = await importOf(folder, "memray.speedscope.json", "--value", "peak");
    expect(rowAt(imported, "imported.py:14").liveBytesAtPeak).toBeGreaterThanOrEqual(120e6);
    expect(imported.summary.imported?.unknown).toContain("live");
  });

  test("py-spy's raw format: samples of CPU time are not bytes", async () => {
    const file = join(folder, "pyspy.raw");
    const pySpy = join(dirname(python), "py-spy");
    await run([pySpy, "record", "--format", "raw", "-o", file, "--", python, program]);
    const { summary } = await importOf(folder, "pyspy.raw");
    expect(summary.imported?.unknown).toEqual([
      "live",
      "peak",
      "allocated",
      "objects",
      "rss",
      "time",
      "python",
    ]);
    expect(summary.sites).toEqual([]);
    expect(summary.limits.join()).toMatch(/--value live/);
  });

  test("objgraph: what holds an object", async () => {
    writeFileSync(
      join(folder, "graph.py"),
      "import objgraph\nclass Session: pass\nhistory = [{'session': Session()}]\n" +
        `objgraph.show_backrefs([history[0]['session']], max_depth=5, filename=${JSON.stringify(join(folder, "held.dot"))})\n`,
    );
    await run([python, join(folder, "graph.py")]);
    const { summary } = await importOf(folder, "held.dot");
    expect(summary.limits.join("\n")).toMatch(/Held by: .*-> list 1 items? .*-> Session/);
  });
});

describe.skipIf(environment.torchPython === null)("files of torch and JAX", () => {
  const python = present(environment.torchPython);

  test("torch.profiler: a trace with memory, and the memory timeline in both forms", async () => {
    await run([python, join(programs, "torch_traced.py"), folder]);
    const trace = await importOf(folder, "trace.json");
    expect(rowAt(trace, "torch_traced.py:17").allocatedBytes).toBe(4 * 256 * 1024);
    expect(trace.summary.imported?.unknown).toEqual(["rss", "python"]);
    // The first snapshot: what the forward pass created and the backward pass finds.
    const [pass] = openRecording(trace.recording).snapshots;
    const moment = new Date(present(pass).timeMs).toISOString();
    const { stdout } = await run([
      ...[tidemark, "summary", trace.recording, "--by", "module", "--at", moment, "--json"],
    ]);
    const groups: { group: string; liveBytes: number }[] = JSON.parse(stdout).groups;
    expect(groups.find(({ group }) => group === "Linear_0")?.liveBytes).toBe(4 * 32 * 128);
    for (const name of ["timeline.json", "timeline.raw.json.gz"]) {
      const { lines } = await importOf(folder, name);
      const parameters = lines.find((row) => row.function === "parameters");
      expect(parameters?.liveBytes).toBe(4 * (64 * 128 + 128));
    }
  });

  test("JAX's device memory profile: bytes by line and device", async () => {
    const file = join(folder, "jax.prof");
    writeFileSync(
      join(folder, "jax_held.py"),
      `import jax, jax.numpy as jnp\nheld = jnp.ones((512, 512)).block_until_ready()\njax.profiler.save_device_memory_profile(${JSON.stringify(file)})\n`,
    );
    await run([python, join(folder, "jax_held.py")]);
    const imported = await importOf(folder, "jax.prof");
    expect(rowAt(imported, "jax_held.py:2").liveBytes).toBe(4 * 512 * 512);
    const { stdout } = await run([
      tidemark,
      "summary",
      imported.recording,
      "--by",
      "device",
      "--json",
    ]);
    expect(JSON.parse(stdout).groups[0]).toMatchObject({ group: "cpu:0", liveBytes: MIB });
  });
});
