import { afterEach, describe, expect, test } from "vitest";
import { environment } from "../../test/environment.js";
import { type MallocTruth, startPython, type Waiting } from "../../test/python_program.js";
import { openProcessMemory } from "../linux/index.js";
import { present } from "../model/base/present.js";
import { type GlibcHeap, readGlibcHeap } from "./glibc_heap.js";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) {
    await stop();
  }
});

async function python(
  interpreter: { path: string; chroot?: string },
  program: string,
): Promise<Waiting> {
  const waiting = await startPython(interpreter, program);
  stops.push(waiting.stop);
  return waiting;
}

function snapshot(pid: number, depth: "cheap" | "full"): GlibcHeap {
  const memory = openProcessMemory(pid);
  try {
    const heap = readGlibcHeap(memory, depth, []);
    expect(heap).not.toBeNull();
    return present(heap);
  } finally {
    memory.close();
  }
}

const sum = (values: Iterable<number>): number => {
  let total = 0;
  for (const value of values) {
    total += value;
  }
  return total;
};

/** A heap with holes, three thread arenas, blocks with their own mappings, and a thread cache. */
const MIXED = `
kept = [libc.malloc(64 + i * 37 % 5000) for i in range(40_000)]
for at in kept[::3]: libc.free(at)
large = [libc.malloc((1 << 20) + i * 4096) for i in range(24)]
for at in large[::4]: libc.free(at)
gates = [threading.Event() for _ in range(3)]
def work(gate):
    mine = [libc.malloc(200 + i % 3000) for i in range(20_000)]
    for at in mine[::2]: libc.free(at)
    gate.set(); threading.Event().wait()
for gate in gates:
    threading.Thread(target=work, args=(gate,), daemon=True).start()
    gate.wait()
say("ready")
say(truth())
`;

describe("compared with glibc's own figures", () => {
  test.each(environment.interpreters)("Python $version at $path", async (interpreter) => {
    const program = await python(interpreter, MIXED);
    const full = snapshot(program.pid, "full");
    const cheap = snapshot(program.pid, "cheap");
    const truth = (await program.go()) as unknown as MallocTruth;
    for (const heap of [full, cheap]) {
      expect([...heap.problems]).toEqual([]);
      expect(sum(heap.arenas.map((arena) => arena.systemBytes))).toBe(truth.arena);
      const free = sum(heap.arenas.map((arena) => arena.freeBytes + arena.fastbinBytes));
      expect(Math.abs(free - truth.fordblks)).toBeLessThan(8192);
      expect(sum(heap.arenas.map((arena) => arena.fastbinBytes))).toBe(truth.fsmblks);
      expect(heap.mmapped.ranges.length).toBe(truth.hblks);
    }
    // the main arena and three of threads
    expect(full.arenas.length).toBeGreaterThanOrEqual(4);
  });
});
