/** Graph, holders and paths from roots, for live programs and their core files. */

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Ajv } from "ajv";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countGraph } from "../../src/cpython/heap/census/type_counts.js";
import {
  countObjects,
  findBoxedNumbers,
  findObjects,
  findRootPaths,
  holderOf,
  largestHolders,
  nodeAt,
  nodesOfType,
  type TakenGraph,
  takeGraph,
} from "../../src/cpython/heap/index.js";
import { openCoreFile, openProcessMemory } from "../../src/linux/index.js";
import { float64At, itemAt, uint32At } from "../../src/model/base/columns.js";
import { present } from "../../src/model/base/present.js";
import type { HeapDiffJson, HeapJson } from "../../src/model/documents/heap/heap_document.js";
import { pathTo } from "../../src/model/heap/heap_paths.js";
import { anyInterpreter, environment } from "../environment.js";
import { start, startPython, type Waiting } from "../python_program.js";
import { repository, tidemark } from "../run.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-heap-"));
const service = join(repository, "test/heap/programs/service.py");
const asked = join(folder, "pairs.json");
const LONG_PAUSE = { maxPauseMs: 60_000 };
const run = promisify(execFile);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function graphOf(pid: number): Promise<TakenGraph> {
  const memory = openProcessMemory(pid);
  try {
    return await takeGraph(memory, LONG_PAUSE, 0);
  } finally {
    memory.close();
  }
}

const own = environment.interpreters.filter(({ chroot, freeThreaded }) => !chroot && !freeThreaded);
const inChroot = environment.interpreters.filter(({ chroot }) => chroot !== undefined);

describe.each(
  [...own, ...inChroot].map((one) => [`Python ${one.version} ${one.path}`, one] as const),
)("%s", (_name, { path, chroot }) => {
  let waiting: Waiting;
  let taken: TakenGraph;

  beforeAll(async () => {
    const words = [path, "-c", readFileSync(service, "utf8"), asked, "10000"];
    waiting = await start(chroot === undefined ? words : ["chroot", chroot, ...words]);
    taken = await graphOf(waiting.pid);
  });
  afterAll(async () => await waiting.stop());

  test("counts the objects that a census counts", () => {
    const memory = openProcessMemory(waiting.pid);
    const { census } = countObjects(memory);
    memory.close();
    const { types, objects, bytes } = countGraph(taken.objects);
    const counted = new Map(types.map((type, row) => [type, row]));
    expect(types.length).toBe(census.typeNames.length);
    for (const [row, type] of census.typeNames.entries()) {
      const own = present(counted.get(type));
      expect([type, float64At(objects, own)]).toEqual([type, float64At(census.objects, row)]);
      // The graph counts values of attributes that getsizeof leaves out.
      const least = float64At(census.bytes, row) + float64At(census.bufferBytes, row);
      expect(bytes[own], type).toBeGreaterThanOrEqual(least);
    }
  });

  test("the unbounded counter is the largest holder; its values lead to it", () => {
    const { stats, values } = waiting.said as { stats: string; values: string[] };
    const [largest] = largestHolders(taken.objects, 3);
    expect(largest).toMatchObject({
      type: "dict",
      path: ["module __main__", "running_stats"],
      entries: 10_000,
      address: Number(stats),
    });
    const found = findObjects(taken.objects, values.map(Number));
    expect(found).toHaveLength(values.length);
    expect(new Set(found.map(({ type }) => type))).toEqual(new Set(["list"]));
    const nodes = found.map(({ node }) => node);
    expect(holderOf(taken.objects, nodes)?.address).toBe(Number(stats));
  });

  test("the block of an instance's attributes is attributed to the instance", () => {
    const { attributes, eighth } = waiting.said as Record<"attributes" | "eighth", string | null>;
    if (attributes !== null) {
      const { graph } = taken.objects;
      expect(graph.address[nodeAt(taken.objects, Number(attributes))]).toBe(Number(eighth));
    }
  });

  test("memory after a container is not part of it, but its table is", () => {
    const { graph, types } = taken.objects;
    const containers = ["dict", "list", "set", "type"].flatMap((type) =>
      nodesOfType(taken.objects, type),
    );
    expect(containers.length).toBeGreaterThan(1000);
    const claimed = containers.filter((node) => {
      const ends = float64At(graph.address, node) + types.of(uint32At(graph.type, node)).basicSize;
      return nodeAt(taken.objects, ends) === node;
    });
    expect(claimed).toEqual([]);
  });

  test("paths are shown as text, and grouped if many share one", () => {
    const sessions = findRootPaths(taken.objects, nodesOfType(taken.objects, "__main__.Session"));
    expect(sessions[0]).toMatchObject({
      path: ["module __main__", "SESSIONS", "dict[...]"],
      objects: 500,
    });
    // Each of them holds one object, so their paths are the same one step higher.
    const lists = nodesOfType(taken.objects, "list");
    const ways = findRootPaths(taken.objects, lists);
    expect(ways.find(({ path }) => path[1] === "SESSIONS")).toMatchObject({
      path: ["module __main__", "SESSIONS", "dict[...]", ".history"],
      objects: 500,
    });
    const { history } = waiting.said as { history: string };
    const node = taken.objects.index.at(Number(history));
    expect(findRootPaths(taken.objects, [node])[0]?.path).toEqual([
      "module __main__",
      "SESSIONS",
      'dict["session 7"]',
      ".history",
      "list[...]",
    ]);
  });

  test("boxed numbers are reported; objects referenced only by each other are garbage", () => {
    expect(findBoxedNumbers(taken.objects)).toEqual([
      expect.objectContaining({ path: ["module __main__", "boxed"], of: "float", count: 20_000 }),
    ]);
    expect(taken.objects.garbage.objects).toBeGreaterThanOrEqual(20 * 50);
    expect(taken.objects.garbage.objects).toBeLessThan(20 * 60);
  });

  test("only a few objects have an unknown holder", () => {
    const { graph } = taken.objects;
    const native = uint32At(graph.edgeStart, 5);
    expect(native - uint32At(graph.edgeStart, 4)).toBeLessThan(graph.nodes * 0.005);
  });

  test.runIf(chroot === undefined)(
    "every step of a path is a reference known to the collector",
    async () => {
      const { graph, paths } = taken.objects;
      const pairs: [string, string][] = [];
      const hex = (node: number) => `0x${float64At(graph.address, node).toString(16)}`;
      for (const type of ["__main__.Session", "float", "dict", "weakref.ReferenceType"]) {
        for (const node of nodesOfType(taken.objects, type).slice(0, 4000)) {
          const way = pathTo(paths, node);
          // From modules on, because a thread's stack changes with every call.
          for (let n = way[0] === 1 ? 2 : way.length; n < way.length && pairs.length < 2000; n++) {
            pairs.push([hex(itemAt(way, n - 1)), hex(itemAt(way, n))]);
          }
        }
      }
      expect(pairs.length).toBeGreaterThan(1000);
      writeFileSync(asked, JSON.stringify(pairs));
      expect(await waiting.go()).toEqual({ unknown: [] });
    },
  );
});

describe("tidemark heap", () => {
  let waiting: Waiting;
  beforeAll(async () => {
    waiting = await start([anyInterpreter().path, service, asked, "20000"]);
  });
  afterAll(async () => await waiting.stop());

  const heap = async (...words: string[]) =>
    await run(tidemark, ["heap", ...words], { maxBuffer: 2 ** 27 });
  const fails = async (...words: string[]) =>
    await heap(...words).then(
      () => ({ code: 0, stderr: "" }),
      (error: { code: number; stderr: string }) => error,
    );

  test("documents match their schemas; two saved heaps are compared", async () => {
    const [a, b] = [join(folder, "a.heap"), join(folder, "b.heap")];
    // However long copying takes while other tests keep the machine busy.
    const snapshot = ["--retained", "--max-pause", "10s"];
    const first = await heap(String(waiting.pid), ...snapshot, "--save", a, "--json");
    const document = validate<HeapJson>(first.stdout, "heap");
    expect(document.holders?.[0]?.path).toEqual(["module __main__", "running_stats"]);
    expect(document.garbage?.objects).toBeGreaterThan(0);
    expect(document.paused).toBe(true);
    const grown = await start([anyInterpreter().path, service, asked, "30000"]);
    await heap(String(grown.pid), ...snapshot, "--save", b);
    await grown.stop();
    const diff = validate<HeapDiffJson>((await heap("diff", a, b, "--json")).stdout, "heapdiff");
    expect(diff.holders[0]).toMatchObject({
      path: ["module __main__", "running_stats"],
      change: "grew",
      entriesA: 20_000,
      entriesB: 30_000,
    });
    const bytes = readFileSync(a);
    writeFileSync(b, bytes.subarray(0, bytes.length - 8));
    expect((await fails("diff", a, b)).stderr).toMatch(/TM-E005/);
    bytes[bytes.length - 3] = present(bytes[bytes.length - 3]) ^ 1;
    writeFileSync(b, bytes);
    expect(await fails("diff", a, b)).toMatchObject({ code: 2 });
  });

  test("one screen explains it, without values of the program", async () => {
    const { stdout } = await heap(String(waiting.pid), "--retained");
    expect(stdout).toMatch(/module __main__ -> running_stats: dict, 20,000 entries/);
    expect(stdout).toMatch(/boxed is a list of 20,000 float/);
    expect(stdout.split("\n").length).toBeLessThan(45);
    const { stdout: ways } = await heap(String(waiting.pid), "--to", "collections.deque");
    expect(ways).toMatch(/module __main__ -> records -> collections.deque/);
    const { stdout: short } = await heap(String(waiting.pid), "--to", "deque", "--json");
    expect(validate<HeapJson>(short, "heap").paths?.[0]?.to).toBe("collections.deque");
    expect(stdout + ways).not.toMatch(/xxxxx|user 7/);
    const { stdout: first } = await heap(String(waiting.pid), "--to", "dict", "--top", "1");
    expect(first).toMatch(/PATH FROM A ROOT\n.+\n {2}\d+ more paths\n/);
    const { stdout: dot } = await heap(
      String(waiting.pid),
      "--to",
      "__main__.Session",
      "--format",
      "dot",
    );
    expect(dot).toMatch(/^digraph heap \{[\s\S]*SESSIONS[\s\S]*\}\n$/);
  });

  test("impossible requests are refused with one line", async () => {
    const { pid } = waiting;
    expect((await fails(String(pid), "--to", "no.Such")).stderr).toMatch(/TM-E052/);
    expect((await fails(String(pid), "--to", "CFunctionType")).stderr).toMatch(
      /TM-E052.*several types have that name: ctypes\.\w+\.<locals>\.CFunctionType, /,
    );
    expect((await fails(String(pid), "--to", "0x10")).stderr).toMatch(/TM-E052/);
    expect((await fails(String(pid), "--retained", "--max-pause", "1ms")).stderr).toMatch(
      /TM-E050/,
    );
    expect((await fails("999999999")).code).not.toBe(0);
    expect((await fails(service)).stderr).toMatch(/TM-E007/);
    expect((await fails(join(folder, "none"))).stderr).toMatch(/TM-E003/);
    expect((await fails(String(process.pid))).stderr).toMatch(/TM-E022/);
  });

  test("a heap too large for the available memory is refused before anything is paused", async () => {
    const memory = openProcessMemory(waiting.pid);
    const { census } = countObjects(memory);
    const objects = census.objects.reduce((sum, count) => sum + count, 0);
    let stated = 0;
    const options = {
      maxPauseMs: 60_000,
      maxBytes: 32 * 2 ** 20,
      onPlan: (_: number, bytes: number) => {
        stated = bytes;
      },
    };
    await expect(takeGraph(memory, options, objects)).rejects.toThrow(/TM-E051 .* MiB of memory/);
    expect(stated).toBe(0);
    // As far as the budget is concerned, 20 GB of small objects.
    await expect(takeGraph(memory, { ...options, maxBytes: 2 ** 34 }, 65_000_000)).rejects.toThrow(
      /TM-E051 the graph of 65000000 objects needs about \d+\.\d GiB/,
    );
    memory.close();
  });

  test("a reader that is killed at any moment leaves the program running", async () => {
    writeFileSync(asked, "[]");
    for (const delay of [60, 200, 450, 800, 1300]) {
      const reader = spawn(tidemark, ["heap", String(waiting.pid), "--retained"], {
        stdio: "ignore",
        detached: true,
      });
      const ended = new Promise((done) => reader.once("exit", done));
      await sleep(delay);
      try {
        process.kill(-present(reader.pid), "SIGKILL");
      } catch {
        // The reader had already ended.
      }
      await ended;
      expect(await waiting.go()).toEqual({ unknown: [] });
    }
  });

  test("reading never makes memory resident that was not", async () => {
    const rss = () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${waiting.pid}/status`, "utf8"))?.[1]);
    const before = rss();
    await graphOf(waiting.pid);
    expect(rss() - before).toBeLessThan(1024);
  });
});

test("many equal items of one list do not hide another holder", async () => {
  const program = `cache = [bytearray(1 << 20) for _ in range(30)]
log = [bytearray(100) for _ in range(3000)]
say({})
`;
  const waiting = await startPython({ path: anyInterpreter().path }, program);
  try {
    const paths = largestHolders((await graphOf(waiting.pid)).objects, 6).map(({ path }) => path);
    expect(paths).toContainEqual(["module __main__", "cache"]);
    expect(paths).toContainEqual(["module __main__", "log"]);
    expect(paths.filter((path) => path.at(-1) === "list[...]")).toHaveLength(1);
  } finally {
    await waiting.stop();
  }
});

describe.runIf(hasGcore())("core files", () => {
  test("a core file shows the same as the program; truncation and holes are reported", async () => {
    const waiting = await start([anyInterpreter().path, service, asked, "12000"]);
    const live = openProcessMemory(waiting.pid);
    const { census } = countObjects(live);
    live.close();
    await run("gcore", ["-o", join(folder, "core"), String(waiting.pid)]);
    await waiting.stop();
    const path = join(folder, `core.${waiting.pid}`);
    const core = openCoreFile(path);
    expect(countObjects(core).census.objects).toEqual(census.objects);
    const { objects } = await takeGraph(core, LONG_PAUSE, 0);
    expect(largestHolders(objects, 1)[0]?.path).toEqual(["module __main__", "running_stats"]);
    expect(core.leftBy).toBe(waiting.pid);
    core.close();
    for (const bytes of [readFileSync(path).length - 4096, 8_000_000, 5000, 100, 0]) {
      truncateSync(path, bytes);
      const outcome = await run(tidemark, ["heap", path]).then(
        ({ stdout }) => stdout,
        (error: { stderr: string; code: number }) => {
          expect(error.code).toBeLessThan(5);
          return error.stderr;
        },
      );
      expect(outcome).toMatch(/cut off|TM-E005|TM-E007|TM-E054/);
    }
  });

  test.runIf(environment.packagesPython !== null)(
    "wheels whose headers a tool has changed are still matched",
    async () => {
      const program = "import numpy, pandas\nheld = numpy.ones(1 << 20)\nsay({})\n";
      const waiting = await startPython({ path: present(environment.packagesPython) }, program);
      await run("gcore", ["-o", join(folder, "wheels"), String(waiting.pid)]);
      await waiting.stop();
      const { stdout, stderr } = await run(tidemark, [
        ...["heap", join(folder, `wheels.${waiting.pid}`), "--json"],
      ]);
      const { types } = JSON.parse(stdout) as HeapJson;
      const arrays = types.find(({ type }) => type === "numpy.ndarray");
      expect(arrays?.bytes).toBeGreaterThan(8 << 20);
      expect(stderr).not.toContain("not here");
    },
  );
});

function hasGcore(): boolean {
  return (process.env.PATH ?? "").split(":").some((place) => {
    try {
      return readFileSync(join(place, "gcore")).length > 0;
    } catch {
      return false;
    }
  });
}

function validate<Document>(text: string, name: string): Document {
  const schema = JSON.parse(readFileSync(join(repository, `docs/json/${name}-1.json`), "utf8"));
  const check = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true }).compile(schema);
  const document = JSON.parse(text);
  expect(check(document), JSON.stringify(check.errors)).toBe(true);
  return document as Document;
}
