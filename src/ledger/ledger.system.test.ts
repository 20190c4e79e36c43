import { existsSync, readFileSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import { anyInterpreter, environment } from "../../test/environment.js";
import { start, startPython, type Waiting } from "../../test/python_program.js";
import { readSmaps, readStatus } from "../linux/index.js";
import { present } from "../model/base/present.js";
import { LEDGER_PARTS, type Ledger, type LedgerPartName } from "../model/profile/ledger.js";
import { readLedger } from "./index.js";

const MIB = 2 ** 20;
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) {
    await stop();
  }
});

async function kept(starting: Promise<Waiting>): Promise<Waiting> {
  const waiting = await starting;
  stops.push(waiting.stop);
  return waiting;
}

function bytesOf(ledger: Ledger, part: LedgerPartName): number {
  return ledger.parts.find((row) => row.part === part)?.bytes ?? Number.NaN;
}

/** What must hold of every ledger. */
function expectWhole(ledger: Ledger): void {
  expect(ledger.parts.map(({ part }) => part)).toEqual(LEDGER_PARTS);
  expect(ledger.parts.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(ledger.rssBytes);
  expect(ledger.parts.every(({ bytes }) => Number.isInteger(bytes) && bytes >= 0)).toBe(true);
  expect(bytesOf(ledger, "unexplained")).toBeLessThan(0.02 * ledger.rssBytes);
  expect(ledger.ussBytes).toBeLessThanOrEqual(ledger.rssBytes);
}

/** Within `share` of what is expected, a MiB beside. */
function expectNear(bytes: number, expected: number, share = 0.02): void {
  expect(Math.abs(bytes - expected), `${bytes} against ${expected}`).toBeLessThan(
    share * expected + MIB,
  );
}

/** Objects, a fragmented heap, arenas of threads, blocks with mappings of their own. */
const MIXED = `
kept = [(i, str(i), [i]) for i in range(200_000)]
blocks = [libc.malloc(3000) for i in range(10_000)]
for at in blocks: ctypes.memset(at, 1, 3000)
for i, at in enumerate(blocks):
    if i % 10: libc.free(at)
large = [libc.malloc(5 << 20) for i in range(8)]
for at in large: ctypes.memset(at, 1, 5 << 20)
def work(gate):
    mine = [libc.malloc(2000) for i in range(2000)]
    for at in mine: ctypes.memset(at, 1, 2000)
    gate.set(); threading.Event().wait()
for _ in range(3):
    gate = threading.Event()
    threading.Thread(target=work, args=(gate,), daemon=True).start()
    gate.wait()
say(0)
say(truth())
`;

describe("the parts add up to RSS, and match the allocators' own figures", () => {
  test.each(environment.interpreters)("Python $version at $path", async (interpreter) => {
    const { pid, go } = await kept(startPython(interpreter, MIXED));
    const before = readStatus(pid)?.rssBytes ?? 0;
    const full = readLedger(pid, "full");
    const cheap = readLedger(pid, "cheap");
    // Looking made it no larger (the kernel's own count lags by some pages a processor).
    expect((readStatus(pid)?.rssBytes ?? 0) - before).toBeLessThan(MIB);
    const truth = (await go()) as Record<string, number>;
    for (const ledger of [full, cheap]) {
      expectWhole(ledger);
      const { freeThreaded } = interpreter;
      expect(ledger.limits).toMatchObject(
        freeThreaded ? [{ kind: "python-not-found", name: "free-threaded" }] : [],
      );
      const malloc = bytesOf(ledger, "malloc.used") + bytesOf(ledger, "malloc.free");
      // Everything in this heap was written to, but for the pages of threads' arenas.
      expectNear(malloc, (truth.arena ?? 0) + (truth.hblkhd ?? 0));
      // Of the free memory, the tops were never written to; what threads' caches hold glibc counts as used.
      expectNear(bytesOf(ledger, "malloc.free"), 9000 * 3008);
      const trim = ledger.parts.find(({ part }) => part === "malloc.free")?.reclaimBytes ?? 0;
      expect(trim).toBeGreaterThan(9000 * 3008 * 0.5);
      expect(trim).toBeLessThanOrEqual(bytesOf(ledger, "malloc.free"));
      expect(ledger.malloc?.mmappedChunks).toBe(truth.hblks);
      // Without the GIL the objects are in an allocator of the interpreter's own.
      const objects = freeThreaded ? "anon.other" : "python.used";
      expect(bytesOf(ledger, objects)).toBeGreaterThan(200_000 * 3 * 48);
      expectNear(
        bytesOf(ledger, "python.used") + bytesOf(ledger, "python.free"),
        ledger.python?.arenaBytes ?? 0,
        0.1,
      );
      expect(bytesOf(ledger, "stacks")).toBeGreaterThan(4 * 8192);
      expect(bytesOf(ledger, "libraries")).toBeGreaterThan(MIB);
    }
    expectNear(bytesOf(cheap, "malloc.used"), bytesOf(full, "malloc.used"));
    expectNear(bytesOf(cheap, "python.used"), bytesOf(full, "python.used"), 0.05);
  });
});

test("trimming releases the stated bytes", async () => {
  const program = await kept(
    startPython(
      anyInterpreter(),
      `
blocks = [libc.malloc(20_000) for i in range(3000)]
for at in blocks: ctypes.memset(at, 1, 20_000)
for i, at in enumerate(blocks):
    if i % 4: libc.free(at)
say(0)
libc.malloc_trim(0)
say(1)
`,
    ),
  );
  const before = readLedger(program.pid, "full");
  await program.go();
  const after = readLedger(program.pid, "full");
  const said = before.parts.find(({ part }) => part === "malloc.free")?.reclaimBytes ?? 0;
  expect(said).toBeGreaterThan(20 * MIB);
  expectNear(before.rssBytes - after.rssBytes, said);
});

const PACKAGES = `
import mmap, tempfile
import numpy, pandas
from multiprocessing import shared_memory
arrays = [numpy.ones(1 << 20) for _ in range(8)]
table = pandas.DataFrame({"a": numpy.arange(1 << 20), "b": [str(i) for i in range(1 << 20)]})
shared = shared_memory.SharedMemory(create=True, size=16 << 20); shared.buf[:] = b"x" * (16 << 20)
shared.unlink()
file = tempfile.TemporaryFile(); file.write(b"y" * (24 << 20)); file.flush()
mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ); mapped.read()
own = mmap.mmap(-1, 12 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); own.write(b"z" * (12 << 20))
say([sum(a.nbytes for a in arrays), int(table.memory_usage().sum())])
`;

test("blocks that are free in pools that are partly used: a cheap reading samples the pools", async () => {
  const text = 'kept = ["s%d" % i * 20 for i in range(600_000)][::200]\nsay(len(kept))\n';
  const { pid } = await kept(startPython(anyInterpreter(), text));
  const [full, cheap] = [readLedger(pid, "full"), readLedger(pid, "cheap")];
  expectWhole(cheap);
  expect(bytesOf(full, "python.free")).toBeGreaterThan(80 * MIB);
  expectNear(bytesOf(cheap, "python.free"), bytesOf(full, "python.free"), 0.03);
  expectNear(bytesOf(cheap, "python.used"), bytesOf(full, "python.used"), 0.5);
});

test.skipIf(environment.packagesPython === null)(
  "arrays, tables, mapped files and shared memory are where they belong",
  async () => {
    const path = present(environment.packagesPython);
    const program = await kept(startPython({ path }, PACKAGES));
    const [arrays = 0, table = 0] = program.said as unknown as number[];
    for (const depth of ["full", "cheap"] as const) {
      const ledger = readLedger(program.pid, depth);
      expectWhole(ledger);
      expect(bytesOf(ledger, "malloc.used")).toBeGreaterThan(arrays + table - MIB);
      expectNear(bytesOf(ledger, "shm"), 16 * MIB);
      expectNear(bytesOf(ledger, "file.mapped"), 24 * MIB);
      // Libraries of numerical code keep anonymous memory of their own.
      expect(bytesOf(ledger, "anon.other")).toBeGreaterThan(12 * MIB - 1);
    }
  },
);

test.skipIf(environment.packagesPython === null)(
  "an allocator built into a library is named",
  async () => {
    const path = present(environment.packagesPython);
    const text = "import pyarrow\nkept = pyarrow.array(range(4_000_000))\nsay(kept.nbytes)\n";
    const { pid, said } = await kept(startPython({ path }, text));
    const ledger = readLedger(pid, "full");
    expectWhole(ledger);
    expect(bytesOf(ledger, "anon.other")).toBeGreaterThan(said as unknown as number);
    const named = ledger.limits.filter(({ kind }) => kind === "allocator").map(({ name }) => name);
    expect(named.some((name) => /^(?:mi|je)malloc in libarrow\.so/.test(name))).toBe(true);
    expect(named.some((name) => name.includes("python"))).toBe(false);
    expect(readLedger(pid, "cheap").limits).toEqual([]); // a cheap reading opens no files
  },
);

test.skipIf(environment.torchPython === null)("tensors are malloc's", async () => {
  const program = await kept(
    startPython(
      { path: present(environment.torchPython) },
      "import torch\ntensors = [torch.ones(1 << 20) for _ in range(32)]\nsay(0)\n",
    ),
  );
  const ledger = readLedger(program.pid, "full");
  expectWhole(ledger);
  expect(bytesOf(ledger, "malloc.used")).toBeGreaterThan(128 * MIB);
  expect(bytesOf(ledger, "malloc.used")).toBeLessThan(260 * MIB);
});

test("several gigabytes in one array, of which some pages were never touched", async () => {
  const program = await kept(
    startPython(
      anyInterpreter(),
      `
at = libc.malloc(4 << 30)
ctypes.memset(at, 1, 200 << 20)
say(0)
`,
    ),
  );
  const ledger = readLedger(program.pid, "full");
  expectWhole(ledger);
  expectNear(bytesOf(ledger, "malloc.used"), 200 * MIB, 0.1);
  expect(ledger.malloc?.mmappedBytes).toBeGreaterThan(4 * 2 ** 30);
});

test("terabytes of address space, reserved and hardly used", async () => {
  const program = await kept(
    startPython(
      anyInterpreter(),
      `
import mmap
MAP_NORESERVE = 0x4000
space = mmap.mmap(-1, 2 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
for at in range(0, 64 << 20, 4096): space[(1 << 40) + at] = 1
block = libc.malloc(6 << 20)
ctypes.memset(block, 1, 6 << 20)
say(0)
`,
    ),
  );
  for (const depth of ["full", "cheap"] as const) {
    const ledger = readLedger(program.pid, depth);
    expectWhole(ledger);
    const anonymous = bytesOf(ledger, "anon.other") + bytesOf(ledger, "malloc.used");
    expect(anonymous).toBeGreaterThan(70 * MIB);
  }
});

describe("programs without Python, and other allocators", () => {
  test("node", async () => {
    const say = "console.log('0'); setInterval(() => {}, 1000)";
    const { pid } = await kept(start([process.execPath, "-e", say]));
    const ledger = readLedger(pid, "full");
    expectWhole(ledger);
    expect([bytesOf(ledger, "python.used"), ledger.python]).toEqual([0, null]);
    expect(bytesOf(ledger, "anon.other")).toBeGreaterThan(MIB);
  });

  test("a shell", async () => {
    const { pid } = await kept(start(["/bin/sh", "-c", "echo 0; read line"]));
    expectWhole(readLedger(pid, "full"));
  });

  test("PYTHONMALLOC=malloc: objects are malloc's", async () => {
    const program = "kept = [(i, str(i)) for i in range(200_000)]\nsay(0)\n";
    const { pid } = await kept(startPython(anyInterpreter(), program, { PYTHONMALLOC: "malloc" }));
    const ledger = readLedger(pid, "full");
    expectWhole(ledger);
    expect(ledger.limits.map(({ kind }) => kind)).toEqual(["python-not-found"]);
    expect(bytesOf(ledger, "malloc.used")).toBeGreaterThan(200_000 * 96);
  });

  const allocators = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"]
    .map((name) => `/usr/lib/x86_64-linux-gnu/${name}`)
    .filter(existsSync);
  test.each(allocators)("%s is named, its memory is opaque", async (library) => {
    const program = "kept = [bytearray(4000) for i in range(5000)]\nsay(0)\n";
    const { pid } = await kept(startPython(anyInterpreter(), program, { LD_PRELOAD: library }));
    const ledger = readLedger(pid, "full");
    expectWhole(ledger);
    expect(ledger.limits.map(({ kind }) => kind)).toContain("allocator");
    expect(bytesOf(ledger, "anon.other")).toBeGreaterThan(5000 * 4000);
    expect(bytesOf(ledger, "python.used")).toBeGreaterThan(MIB);
  });
});

test("a program that allocates, frees and starts threads during the reading", async () => {
  const program = await kept(
    startPython(
      anyInterpreter(),
      `
import random
def churn():
    mine = []
    while True:
        mine.append(bytearray(random.randrange(20_000)))
        if len(mine) > 3000: del mine[::2]
def short():
    while True:
        thread = threading.Thread(target=lambda: bytearray(100_000)); thread.start(); thread.join()
for work in (churn, churn, short): threading.Thread(target=work, daemon=True).start()
say(0)
`,
    ),
  );
  for (let time = 0; time < 20; time++) {
    expectWhole(readLedger(program.pid, time % 2 === 0 ? "full" : "cheap"));
  }
});

describe("damage in the program's own heap", () => {
  /** Overwrites what the test names, then waits without touching malloc. */
  const damaged = (what: string) => `
import random
random.seed(1)
blocks = [libc.malloc(500 + i % 3000) for i in range(20_000)]
for at in blocks[::2]: libc.free(at)
noise = random.randbytes(1 << 20)
maps = [line.split() for line in open("/proc/self/maps")]
heap = next(line for line in maps if line[-1] == "[heap]")
low, high = (int(word, 16) for word in heap[0].split("-"))
data = [line for line in maps if "/libc" in line[-1] and "w" in line[1]]
first, last = (int(word, 16) for word in data[-1][0].split("-"))
reply = json.dumps(0).encode() + b"\\n"
${what}
os.write(1, reply); os.read(0, 1)
`;
  test.each([
    ["chunk headers", "ctypes.memmove(blocks[5000] - 16, noise, 1 << 20)"],
    ["chunk headers, all zero", "ctypes.memset(blocks[5000] - 16, 0, 4 << 20)"],
    [
      "a chunk as large as everything",
      "ctypes.memmove(blocks[5001] - 8, (2**46 + 1).to_bytes(8, 'little'), 8)",
    ],
    [
      "the lists lead in a circle",
      `at = blocks[5000]
ctypes.memmove(at, at.to_bytes(8, "little") * 2, 16)`,
    ],
    ["libc's data", "ctypes.memmove(first + 0x400, noise, 0xa00)"],
  ])("%s", async (_name, what) => {
    const { pid } = await kept(startPython(anyInterpreter(), damaged(what)));
    for (const depth of ["full", "cheap"] as const) {
      expectWhole(readLedger(pid, depth));
    }
  });
});

test("a heap that grows faster than it is read still counts as malloc's", async () => {
  // By brk, in chunks below the size that gets mappings of its own, up to 512 MiB.
  const program = await kept(
    startPython(
      anyInterpreter(),
      `
def grow():
    for n in range(5000):
        ctypes.memset(libc.malloc(100_000), 1, 100_000)
        os.sched_yield()
ctypes.CDLL(None).mallopt(-3, 1 << 30)
say({})
grow()
say({})
`,
    ),
  );
  const grown = program.go();
  let over = false;
  void grown.then(() => {
    over = true;
  });
  do {
    const ledger = readLedger(program.pid, "cheap");
    expect(bytesOf(ledger, "anon.other")).toBeLessThan(16 * MIB);
    await new Promise((done) => setImmediate(done));
  } while (!over);
  const ledger = readLedger(program.pid, "cheap");
  expect(bytesOf(ledger, "malloc.used")).toBeGreaterThan(470 * MIB);
});

test("no such process", () => {
  expect(() => readLedger(2 ** 22 - 1, "full")).toThrow(/TM-E020/);
});

test("smaps of this process, mapping by mapping", () => {
  const mappings = readSmaps(process.pid) ?? [];
  const text = readFileSync("/proc/self/smaps", "utf8");
  expect(mappings.length).toBeGreaterThan(10);
  expect(Math.abs(mappings.length - (text.match(/^Rss:/gm)?.length ?? 0))).toBeLessThan(20);
  for (const mapping of mappings) {
    const { sharedCleanBytes, sharedDirtyBytes, privateCleanBytes, privateDirtyBytes } = mapping;
    expect(sharedCleanBytes + sharedDirtyBytes + privateCleanBytes + privateDirtyBytes).toBe(
      mapping.rssBytes,
    );
  }
});
