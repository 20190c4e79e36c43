import { afterEach, expect, test } from "vitest";
import { environment } from "../../../test/environment.js";
import { startPython } from "../../../test/python_program.js";
import { openProcessMemory } from "../../linux/index.js";
import { itemAt } from "../../model/base/columns.js";
import { ArenaPlaces, countPools, findArenas } from "./arenas.js";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) {
    await stop();
  }
});

const PROGRAM = `
kept = [(i, str(i), [i]) for i in range(300_000)]
for i in range(0, len(kept), 3): kept[i] = None
big = sum(1 for _ in ())
say(0)
say(sys.getallocatedblocks())
`;

test.each(environment.interpreters)(
  "blocks in use are those of Python $version at $path",
  async (interpreter) => {
    const program = await startPython(interpreter, PROGRAM);
    stops.push(program.stop);
    const memory = openProcessMemory(program.pid);
    const arenas = findArenas(memory);
    if (interpreter.freeThreaded) {
      expect(arenas).toBeNull();
      return;
    }
    if (arenas === null) {
      throw new Error("no arenas");
    }
    const pools = countPools(memory, arenas);
    memory.close();
    expect(pools.unread).toBe(0);
    const blocks = pools.usedBlocks.reduce((sum, used) => sum + used, 0);
    const truth = (await program.go()) as unknown as number;
    // Python counts large blocks, which malloc serves, together with small ones.
    expect(blocks).toBeLessThanOrEqual(truth + 100);
    expect(blocks).toBeGreaterThan(truth * 0.98);
  },
);

const ISOLATED = `
source = "kept = [str(i) for i in range(200_000)]"
try:
    import _interpreters
    one = _interpreters.create("isolated"); _interpreters.exec(one, source)
except ImportError:
    import _xxsubinterpreters
    one = _xxsubinterpreters.create(isolated=True); _xxsubinterpreters.run_string(one, source)
say(0)
`;

/** From 3.12 on, each interpreter may have its own GIL and allocator state. */
const withOwnState = environment.interpreters.filter(
  ({ version, freeThreaded }) => !freeThreaded && Number(version.split(".")[1]) >= 12,
);

test.each(withOwnState)(
  "arenas of an interpreter with its own GIL count as well: Python $version at $path",
  async (interpreter) => {
    const program = await startPython(interpreter, ISOLATED);
    stops.push(program.stop);
    const memory = openProcessMemory(program.pid);
    const arenas = findArenas(memory);
    if (arenas === null) {
      throw new Error("no arenas");
    }
    const pools = countPools(memory, arenas);
    memory.close();
    expect(new Set(arenas.addresses).size).toBe(arenas.addresses.length);
    expect(pools.unread).toBe(0);
    expect(pools.usedBlocks.reduce((sum, used) => sum + used, 0)).toBeGreaterThan(200_000);
  },
);

const CHANGING = `
kept = [str(i) for i in range(100_000)]
say(0)
more = [(i, str(i)) for i in range(1_500_000)]
say(0)
del kept[:]
del more[::2]
say(0)
more = None
kept = [str(i) for i in range(300_000)]
${ISOLATED}`;

test.each(environment.interpreters.filter(({ freeThreaded }) => !freeThreaded))(
  "a reading at known places finds the same as a search: Python $version at $path",
  async (interpreter) => {
    const hasOwnState = withOwnState.includes(interpreter);
    const program = await startPython(
      interpreter,
      hasOwnState ? CHANGING : CHANGING.replace(ISOLATED, "say(0)"),
    );
    stops.push(program.stop);
    const places = new ArenaPlaces();
    const counts: number[] = [];
    for (let stage = 0; stage < 4; stage++) {
      if (stage > 0) {
        await program.go();
      }
      const memory = openProcessMemory(program.pid);
      const again = findArenas(memory, places);
      expect(again).toEqual(findArenas(memory));
      expect(places.words.length).toBeGreaterThan(0);
      counts.push(again?.addresses.length ?? 0);
      memory.close();
    }
    expect(counts[1]).toBeGreaterThan(4 * itemAt(counts, 0));
  },
);
