/** The interpreter is found wherever it is, and refused if anything does not fit. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { environment } from "../../../test/environment.js";
import { start, startPython, type Waiting } from "../../../test/python_program.js";
import { type Memory, openProcessMemory } from "../../linux/index.js";
import { itemAt } from "../../model/base/columns.js";
import { present } from "../../model/base/present.js";
import { TidemarkError } from "../../model/errors/errors.js";
import {
  LAYOUTS,
  listThreads,
  locatePython,
  type PythonLayout,
  type PythonRuntime,
  readStacks,
} from "../index.js";
import { MemoryCopy } from "../memory_copy.fixture.js";
import { COOKIE } from "./published_offsets.js";

const interpreters = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);

const PROGRAM = `
import asyncio
def wait(): threading.Event().wait()
threading.Thread(target=wait, daemon=True).start()
async def inner(): await asyncio.sleep(1000)
async def main():
    asyncio.create_task(inner())
    await asyncio.sleep(0.05)
    say(1)
asyncio.run(main())
`;

function idOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof TidemarkError) {
      return error.id;
    }
    throw error;
  }
  return "found";
}

describe.each(interpreters)("Python $version at $path", (interpreter) => {
  let program: Waiting;
  let memory: Memory;
  beforeAll(async () => {
    program = await startPython(interpreter, PROGRAM);
    memory = openProcessMemory(program.pid);
  });
  afterAll(async () => {
    memory.close();
    await program.stop();
  });

  test("is found, with its version and a table whose sizes agree", () => {
    const python = locatePython(memory);
    expect(python.version).toBe(interpreter.version);
    expect([python.sizesAgree, python.layout.debug]).toEqual([true, false]);
  });

  test("is found without its symbols and its files: embedded, stripped, deleted", () => {
    const headers = new Set(
      memory.mappings
        .filter(({ offset, inode }) => offset === 0 && inode !== 0)
        .map(({ start }) => start),
    );
    const hidden = seenThrough(memory, (address, target) =>
      headers.has(address - (address % 4096)) ? 0 : memory.readInto(address, target),
    );
    expect(locatePython(hidden).address).toBe(locatePython(memory).address);
  });

  test("is rejected by every table of another version", () => {
    const own = interpreter.version.split(".", 2).join(".");
    const others = LAYOUTS.filter(({ version }) => !version.startsWith(`${own}.`));
    expect(idOf(() => locatePython(memory, others))).toBe("TM-E023");
  });

  test("is rejected if a table has any wrong offset on the way to the threads", () => {
    const python = locatePython(memory);
    const right = python.layout;
    let refused = 0;
    const paths = [
      ...["runtime.interpretersHead", "runtime.interpretersMain", "interpreter.threadsHead"],
      ...["thread.interpreter", "thread.next", "thread.previous", "thread.threadId"],
      ...["interpreter.sysDict", "object.type", "type.name", "dict.keys", "unicode.length"],
      ...["dictKeys.entries", "dictKeys.indices", "runtime.initialized"],
    ];
    for (const path of paths) {
      for (const change of [-8, 8]) {
        // Published offsets would take precedence over the table, so this interpreter publishes none.
        const wrong = changed({ ...right, published: null }, path, change);
        let reached: unknown = null;
        const id = idOf(() => {
          reached = threadsOf(locatePython(silent(memory), [wrong]));
        });
        // Some words have the same value as their neighbours; the first interpreter, for example, is also the
        // main one.
        if (id === "found") {
          expect(reached, `${path} ${change}`).toEqual(threadsOf(python));
        } else {
          expect(id).toMatch(/^TM-E02[235]$/);
        }
        refused += id === "found" ? 0 : 1;
      }
    }
    expect(refused).toBeGreaterThan(20);
  });

  test("ends in a typed error or an answer, whatever its memory contains", async () => {
    const copy = new MemoryCopy(memory);
    await readStacks(locatePython(copy));
    const random = generator(interpreter.version.length * 7919 + 17);
    const used = [...copy.pages.keys()];
    let refused = 0;
    const rounds = 12;
    for (let round = 0; round < rounds; round++) {
      const damaged = new Map<number, Uint8Array>();
      // The result may not depend on some of the pages. In the last round, no page is valid.
      const last = round === rounds - 1;
      for (let count = last ? used.length : 3 + random(40); count > 0; count--) {
        const page = itemAt(used, last ? count - 1 : random(used.length));
        damaged.set(page, last ? new Uint8Array(4096) : damage(copy, page, random));
      }
      copy.damage = (page, bytes) => damaged.get(page) ?? bytes;
      try {
        await readStacks(locatePython(copy));
      } catch (error) {
        expect(error).toBeInstanceOf(TidemarkError);
        expect((error as TidemarkError).id).toMatch(/^TM-E02[2-5]$/);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(0);
  });
});

function seenThrough(memory: Memory, readInto: Memory["readInto"]): Memory {
  return {
    ...{ pid: null, name: memory.name, mappings: memory.mappings, readInto },
    refresh: () => true,
    resident: (start, end) => memory.resident(start, end),
    openFile: () => null,
    close: () => {},
  };
}

/** A memory whose runtime does not begin with the cookie. */
function silent(memory: Memory): Memory {
  return seenThrough(memory, (address, target) => {
    const length = memory.readInto(address, target);
    const bytes = Buffer.from(target.buffer, target.byteOffset, length);
    for (let at = bytes.indexOf(COOKIE); at >= 0; at = bytes.indexOf(COOKIE, at + 1)) {
      bytes[at] = 0;
    }
    return length;
  });
}

function threadsOf(python: PythonRuntime) {
  return listThreads(python).map(({ address, tid, interpreter }) => [address, tid, interpreter]);
}

function changed(layout: PythonLayout, path: string, by: number): PythonLayout {
  const copy = structuredClone(layout) as unknown as Record<string, Record<string, number>>;
  const [group, field] = path.split(".") as [string, string];
  const fields = present(copy[group]);
  fields[field] = present(fields[field]) + by;
  return copy as unknown as PythonLayout;
}

/** Random bytes, the contents of another page, words that point anywhere, huge numbers, a truncation. */
function damage(copy: MemoryCopy, page: number, random: (below: number) => number): Uint8Array {
  const bytes = Uint8Array.from(copy.pages.get(page) ?? []);
  const pages = [...copy.pages.values()];
  const view = new DataView(bytes.buffer);
  switch (random(6)) {
    case 0:
      return bytes.map(() => random(256));
    case 1:
      return Uint8Array.from(itemAt(pages, random(pages.length)));
    case 2:
      return bytes.subarray(0, random(4096));
    default:
      for (let count = random(200); count > 0 && bytes.length === 4096; count--) {
        const at = random(512) * 8;
        const kind = random(4);
        if (kind === 0) {
          view.setBigUint64(at, 0xffffffffffffffffn, true);
        } else if (kind === 1) {
          view.setBigUint64(at, BigInt(random(2 ** 31)), true);
        } else if (kind === 2) {
          view.setBigUint64(at, BigInt(page) * 4096n + BigInt(random(512) * 8), true);
        } else {
          view.setBigUint64(at, view.getBigUint64(random(512) * 8, true), true);
        }
      }
      return bytes;
  }
}

/** Park and Miller's generator, so that a failure is reproducible. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48_271) % 0x7fffffff;
    return state % below;
  };
}

describe("refused by name", () => {
  const newest = present(interpreters.at(-1));

  test.each([
    [8, 0x03_10_00_f0, /^TM-E023 .* runs Python 3\.16\.0; /],
    [16, 1, /^TM-E023 .* a free-threaded build; /],
  ])("published data at %i", async (offset, value, message) => {
    const program = await startPython(newest, "say(1)");
    const memory = openProcessMemory(program.pid);
    const { address } = locatePython(memory);
    const copy = new MemoryCopy(memory);
    const page = Math.floor(address / 4096);
    copy.damage = (at, bytes) => {
      if (at !== page) {
        return bytes;
      }
      const other = Uint8Array.from(bytes);
      new DataView(other.buffer).setUint32(address + offset - page * 4096, value, true);
      return other;
    };
    expect(() => locatePython(copy)).toThrow(message);
    memory.close();
    await program.stop();
  });

  test("a process that has ended, or has become another program", async () => {
    const program = await startPython(newest, "say(1)");
    const memory = openProcessMemory(program.pid);
    await program.stop();
    expect(() => locatePython(memory)).toThrow(/^TM-E020/);
    memory.close();
  });

  test("the version in the name of its files, although another table fits better", async () => {
    const program = await startPython(newest, "say(1)");
    const memory = openProcessMemory(program.pid);
    const { layout } = locatePython(memory);
    const own = changed({ ...layout, published: null }, "runtime.initialized", 8);
    const fitting = { ...layout, published: null, version: "3.9.18" };
    const other = changed(fitting, "thread.interpreter", 8);
    expect(() => locatePython(silent(memory), [other, own])).toThrow(
      new RegExp(`^TM-E025 .* does not match the layout of Python ${layout.version}: `),
    );
    memory.close();
    await program.stop();
  });

  test("a process without Python", async () => {
    const program = await start(["sh", "-c", "echo 1; read line"]);
    const memory = openProcessMemory(program.pid);
    expect(() => locatePython(memory)).toThrow(/^TM-E022 no Python interpreter/);
    memory.close();
    await program.stop();
  });

  test("an interpreter that is too new for the known layouts", async () => {
    const program = await startPython(newest, "say(1)");
    const memory = openProcessMemory(program.pid);
    const old = LAYOUTS.filter(({ published }) => published === null);
    expect(() => locatePython(memory, old)).toThrow(/^TM-E023 .* runs Python 3\.1\d\./);
    memory.close();
    await program.stop();
  });
});
