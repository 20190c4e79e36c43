import { afterEach, expect, test } from "vitest";
import { environment } from "../../test/environment.js";
import { startPython } from "../../test/python_program.js";
import { openProcessMemory } from "../linux/index.js";
import { countPools, findArenas } from "./arenas.js";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
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
    if (arenas === null) throw new Error("no arenas");
    const pools = countPools(memory, arenas);
    memory.close();
    expect(pools.unread).toBe(0);
    const blocks = pools.usedBlocks.reduce((sum, used) => sum + used, 0);
    const truth = (await program.go()) as unknown as number;
    // Python counts large blocks, which malloc serves, with the small ones.
    expect(blocks).toBeLessThanOrEqual(truth + 100);
    expect(blocks).toBeGreaterThan(truth * 0.98);
  },
);
