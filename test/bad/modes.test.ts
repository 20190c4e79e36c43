/** Python's own modes of allocating and checking memory, on several interpreters of this machine. */
import { afterAll, describe, expect, inject, test } from "vitest";
import { compare } from "../behaviour.js";
import { someInterpreters } from "../environment.js";
import { removeScratch } from "../run.js";
import { bytesByLine } from "../truth.js";

afterAll(removeScratch);

const program = `import os, sys
def large():
    return bytes(160 << 20)
def small():
    slots = [None] * 600_000
    for index in range(600_000):
        slots[index] = bytes(200)
    return slots
kept = [large(), small()]
del kept[1][::2]
print(sys.getsizeof(kept[1][0]), flush=True)
os._exit(0)
`;
/** Twenty times the coarsest period that the controller uses on a busy machine: missed once in 500 million runs. */
const LARGE = 160 << 20;
const interpreters = someInterpreters(inject("counts").memoryModes);

/** What each mode can show: debug allocators hide the small objects behind arenas, and are reported. */
const modes: { name: string; env: Record<string, string>; options: string[]; small: boolean }[] = [
  { name: "PYTHONMALLOC=malloc", env: { PYTHONMALLOC: "malloc" }, options: [], small: true },
  { name: "PYTHONMALLOC=pymalloc", env: { PYTHONMALLOC: "pymalloc" }, options: [], small: true },
  { name: "PYTHONMALLOC=debug", env: { PYTHONMALLOC: "debug" }, options: [], small: false },
  {
    name: "PYTHONMALLOC=malloc_debug",
    env: { PYTHONMALLOC: "malloc_debug" },
    options: [],
    small: true,
  },
  { name: "-X dev", env: {}, options: ["-X", "dev"], small: false },
  { name: "PYTHONTRACEMALLOC=5", env: { PYTHONTRACEMALLOC: "5" }, options: [], small: true },
  { name: "-I -S -B", env: {}, options: ["-I", "-S", "-B"], small: true },
];

describe.each(interpreters.map(({ version, path }) => [version, path] as const))(
  "Python %s",
  (_version, python) => {
    test.each(modes.map((mode) => [mode.name, mode] as const))(
      "%s",
      async (name, { env, options, small }) => {
        const { recorded } = await compare([python, ...options, "-c", program], { env });
        const lines = bytesByLine(recorded.open().profileAt("end"), "live");
        const large = lines.get("large <string>:3");
        expect(large?.bytes).toBeGreaterThan(LARGE * 0.99);
        expect(large?.bytes).toBeLessThan(LARGE * 1.05);
        const { limits, agent } = await recorded.summary();
        if (small) {
          const exact = 300_000 * 233;
          const { bytes, standardError } = lines.get("small <string>:7") ?? {
            bytes: 0,
            standardError: 0,
          };
          expect(standardError).toBeLessThan(exact * 0.75);
          // A debug allocator adds some words to each object, and tracemalloc keeps a trace of it.
          const more = name.includes("debug") ? 32 : name.includes("TRACEMALLOC") ? 80 : 0;
          const most = 300_000 * more;
          // Few samples may state too small an error: then use the error of the true size at the period in force.
          const error = Math.max(standardError, Math.sqrt(exact * agent.periodBytes));
          expect(bytes).toBeGreaterThan(exact * 0.97 - 6 * error);
          expect(bytes).toBeLessThan(exact * 1.03 + 6 * error + most);
        } else {
          expect(limits.filter((line) => /debug/i.test(line))).toHaveLength(1);
        }
        if (small && !name.includes("debug")) {
          expect(limits).toEqual([]);
        }
      },
    );
  },
);
