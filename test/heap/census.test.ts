/** Compares the census of every CPython on this machine with what the interpreter itself counts. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  countObjects,
  countObjectsExactly,
  type TakenCensus,
} from "../../src/cpython/heap/index.js";
import { openProcessMemory } from "../../src/linux/index.js";
import { float64At } from "../../src/model/base/columns.js";
import { anyInterpreter, environment, type Interpreter } from "../environment.js";
import { start, type Waiting } from "../python_program.js";
import { repository } from "../run.js";

const program = readFileSync(join(repository, "test/heap/programs/everything.py"), "utf8");
const LONG_PAUSE = { maxPauseMs: 60_000 };
/** Bytes available for a copy: too few. */
const NO_ROOM = 1;
/** Objects that the program itself creates while it counts, or frees before it waits. */
const BETWEEN = 4;

function commandFor({ path, chroot }: Interpreter, ...args: string[]): string[] {
  const words = [path, "-c", program, ...args];
  return chroot === undefined ? words : ["chroot", chroot, ...words];
}

interface Truth {
  readonly tracked: Record<string, string>;
  readonly known: Record<string, string>;
  readonly blocks: number;
}

interface Counted {
  readonly objects: number;
  readonly bytes: number;
  readonly tracked: number;
}

function rowsOf({ census }: TakenCensus): Map<string, Counted> {
  return new Map(
    census.typeNames.map((name, row) => [
      name,
      {
        objects: float64At(census.objects, row),
        bytes: float64At(census.bytes, row),
        tracked: float64At(census.tracked, row),
      },
    ]),
  );
}

const withGil = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);

describe.each(
  withGil.map(
    (one) => [`Python ${one.version}${one.chroot ? " (chroot)" : ""} ${one.path}`, one] as const,
  ),
)("%s", (_name, interpreter) => {
  let waiting: Waiting;
  let truth: Truth;
  let running: TakenCensus;
  let exact: TakenCensus;
  let inPlace: TakenCensus;

  beforeAll(async () => {
    waiting = await start(commandFor(interpreter));
    truth = waiting.said as unknown as Truth;
    const memory = openProcessMemory(waiting.pid);
    running = countObjects(memory);
    exact = await countObjectsExactly(memory, LONG_PAUSE);
    inPlace = await countObjectsExactly(memory, { ...LONG_PAUSE, maxBytes: NO_ROOM });
    memory.close();
  });
  afterAll(async () => await waiting.stop());

  test("objects of every layout are counted individually, with the sizes of getsizeof", () => {
    const rows = rowsOf(exact);
    for (const [type, text] of Object.entries(truth.known)) {
      const [objects, bytes] = text.split(" ").map(Number) as [number, number];
      const row = rows.get(type);
      const ours = type.startsWith("__main__.");
      expect(row?.objects ?? 0, type).toBeGreaterThanOrEqual(objects);
      if (ours) {
        expect(row, type).toMatchObject({ objects, bytes });
      } else if (type !== "generator" && type !== "bytearray") {
        expect(row?.bytes ?? 0, type).toBeGreaterThanOrEqual(bytes);
      }
    }
  });

  test("tracked objects are those that gc.get_objects() lists", () => {
    const rows = rowsOf(exact);
    for (const [type, text] of Object.entries(truth.tracked)) {
      const objects = Number(text.split(" ")[0]);
      const tracked = rows.get(type)?.tracked ?? 0;
      expect(tracked, type).toBeGreaterThanOrEqual(objects - BETWEEN);
      // 3.12 has immortal tuples (bases of builtin types) that get_objects() does not list.
      if (type !== "tuple") {
        expect(tracked, type).toBeLessThanOrEqual(objects + BETWEEN);
      }
    }
  });

  test("used blocks equal sys.getallocatedblocks() except those from malloc", () => {
    const { usedBlocks, tornPools, pools } = exact.census.figures;
    expect(pools).toBeGreaterThan(100);
    expect(tornPools).toBe(0);
    expect(usedBlocks).toBeLessThanOrEqual(truth.blocks + 200);
    expect(usedBlocks).toBeGreaterThan(truth.blocks * 0.93);
  });

  test("without a pause it gives the same result for an idle program", () => {
    expect(running.pauseMs).toBe(0);
    expect(exact.pauseMs).toBeGreaterThan(0);
    expect(rowsOf(running)).toEqual(rowsOf(exact));
  });

  test("without room for a copy, it is counted during the pause", () => {
    expect(inPlace.pauseMs).toBeGreaterThan(0);
    expect(rowsOf(inPlace)).toEqual(rowsOf(exact));
  });
});

test("a count that would pause for too long is refused before anything is paused", async () => {
  const waiting = await start(commandFor(anyInterpreter()));
  const memory = openProcessMemory(waiting.pid);
  const asked = countObjectsExactly(memory, { maxPauseMs: 21, maxBytes: NO_ROOM });
  await expect(asked).rejects.toThrow(/TM-E050 process \d+ would be paused for about \d+ ms/);
  memory.close();
  await waiting.stop();
});

describe("other allocators", () => {
  test.each(["malloc", "debug", "pymalloc_debug"])("PYTHONMALLOC=%s", async (allocator) => {
    const waiting = await start(commandFor(anyInterpreter()), { PYTHONMALLOC: allocator });
    const memory = openProcessMemory(waiting.pid);
    const taken = await countObjectsExactly(memory, LONG_PAUSE);
    memory.close();
    await waiting.stop();
    const truth = waiting.said as unknown as Truth;
    const rows = rowsOf(taken);
    for (const [type, text] of Object.entries(truth.known)) {
      const objects = Number(text.split(" ")[0]);
      const found = rows.get(type)?.objects ?? 0;
      expect(found, type).toBeGreaterThanOrEqual(objects);
      if (type.startsWith("__main__.")) {
        expect(found, type).toBeLessThanOrEqual(objects * 1.005);
      }
    }
    expect(taken.census.figures.pools > 0).toBe(allocator !== "malloc");
  });
});
