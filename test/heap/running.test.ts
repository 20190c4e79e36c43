/** Holders of objects in a program that keeps running while its heap is copied, and moves its objects all the time. */
import { afterEach, describe, expect, inject, test } from "vitest";
import { lookUpHolders } from "../../src/holders/holder_lookup.js";
import { anyInterpreter, someInterpreters } from "../environment.js";
import { startPython, type Waiting } from "../python_program.js";

/** `grow` and `shrink`: each gets a new table every few thousand items. */
const program = (made: string, grow: string, shrink: string) => `
import time
class Item: pass
items = [Item() for _ in range(100)]
held = ${made}
addresses = [id(item) for item in items]
del items
say(addresses)
def move():
    while True:
        for n in range(100, 60_000): ${grow}
        ${shrink}
threading.Thread(target=move, daemon=True).start()
say({})
say({})
`;
/**
 * The rows that are right: at least so many of nine lookups. Each may coincide with a change of what it looks at, so
 * where too few are right by chance, twice nine or three times nine decide.
 */
function mostOf<Row>(least: number, look: () => Row, isRight: (row: Row) => boolean): Row[] {
  const rows: Row[] = [];
  const right = () => rows.filter(isRight);
  do {
    rows.push(...Array.from({ length: 9 }, look));
  } while (9 * right().length < least * rows.length && rows.length < 27);
  expect(9 * right().length, JSON.stringify(rows)).toBeGreaterThanOrEqual(least * rows.length);
  return right();
}

/** The container moves all the time, so even a lookup's second copy may coincide with a move. With a single copy and
 * no second read, no lookup would be complete. */
const LEAST_WHOLE = 7;
const GONE = 0x7000_0000_1000;
let waiting: Waiting;
afterEach(async () => await waiting.stop());

test.each([
  ["list", "list(items)", "held.append(None)", "del held[100:]"],
  ["dict", "dict(enumerate(items))", "held[n] = None", "for n in range(100, 60_000): del held[n]"],
  ["set", "set(items)", "held.add(n)", "for n in range(100, 60_000): held.discard(n)"],
  [
    "tuple",
    "tuple(items) + (None,) * 60_000",
    // The items move together: one that moves from one end to the other is at neither in a copy meanwhile.
    "globals()['held'] = held[-1:] + held[:-1]; time.sleep(0.03)",
    "pass",
  ],
])("a %s that moves while the heap is copied is still the holder", async (type, ...how) => {
  waiting = await startPython(anyInterpreter(), program(...how));
  const addresses = waiting.said as unknown as number[];
  await waiting.go();
  const sites = [{ site: "items", python: true, addresses, swelling: null }];
  const whole = mostOf(
    LEAST_WHOLE,
    () => lookUpHolders({ pid: waiting.pid, sites, unsampled: null }).batch?.rows[0],
    (row) => row?.held === 100,
  );
  for (const row of whole) {
    expect(row).toMatchObject({ path: ["module __main__", "held"], type });
  }
});

test("a block that was replaced since the snapshot is found by its size, and is not attributed to a graph wrongly", async () => {
  const swollen = `class Upload: pass
upload = Upload()
upload.received = bytearray(6 << 20)
say(0)
`;
  waiting = await startPython(anyInterpreter(), swollen);
  const rowsFor = (least: number, most: number) => {
    const swelling = { least, most };
    const sites = [{ site: "buffer", python: false, addresses: [GONE], swelling }];
    return lookUpHolders({ pid: waiting.pid, sites, unsampled: null }).batch?.rows;
  };
  const path = ["module __main__", "upload", ".received"];
  expect(rowsFor(5 << 20, 7 << 20)).toMatchObject([{ looked: 1, held: 1, graph: 0, path }]);
  expect(rowsFor(5 << 20, 6 << 20)).toMatchObject([{ looked: 0, held: 0, graph: 0, path: [] }]);
});

test("a small object may be at the block's former address: the new block is reported instead", async () => {
  const moved = `class Upload: pass
upload = Upload()
upload.received = bytearray(6 << 20)
names = {"first": "a name" * 9}
say(hex(id(names["first"])))
`;
  waiting = await startPython(anyInterpreter(), moved);
  const swelling = { least: 5 << 20, most: 7 << 20 };
  const addresses = [Number(waiting.said)];
  const sites = [{ site: "buffer", python: false, addresses, swelling }];
  expect(lookUpHolders({ pid: waiting.pid, sites, unsampled: null }).batch?.rows).toMatchObject([
    { looked: 1, held: 1, path: ["module __main__", "upload", ".received"] },
  ]);
});

/** Allocates repeatedly: each value is replaced a moment later. */
const renewing = (statement: string, seconds: number) => `
import time
class Part: pass
class Whole:
    def __init__(self, text):
        self.part = Part()
        self.part.texts = {"large": [text]}
class Upload: pass
upload = Upload()
names = {}
def serve():
    global text
    while True:
        ${statement}
        time.sleep(${seconds})
threading.Thread(target=serve, name="server", daemon=True).start()
time.sleep(0.2)
say(0)
`;

/** Larger each time, so that malloc maps each one separately, and nothing is left at the previous address. */
const taking = `
import time
state = {"readings": tuple(float(n) for n in range(300_000))}
addresses = [id(reading) for reading in state["readings"][::6_000]]
def read():
    while True:
        state["readings"] += (1.5,) * 2_000
        time.sleep(0.1)
threading.Thread(target=read, daemon=True).start()
time.sleep(0.2)
say(addresses)
say({})
`;

/** The dict passed to a call is freed in the called function, and the next dict is allocated at the same address. */
const reusing = `
import ctypes
def serve(**nothing):
    global address
    taken = [{} for _ in range(100)]
    text = bytes(6 << 20)
    address = id(text)
    for one in taken:
        one["large"] = text
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))
    del taken, text, one
    threading.Event().wait()
threading.Thread(target=serve, name="server", daemon=True).start()
while "address" not in globals(): pass
say([address])
`;

describe.each(
  someInterpreters(inject("counts").replacedHolders).map(
    (interpreter) => [interpreter.version, interpreter] as const,
  ),
)("Python %s: holders of objects that are constantly replaced", (version, interpreter) => {
  /** How many lookups find it complete: if it has many parts, some lookups coincide with its creation. */
  test.each([
    ["a global", "text = bytes(6 << 20)", 0.001, 6, /^module __main__ -> text$/],
    [
      "an attribute",
      "upload.text = bytes(6 << 20)",
      0.001,
      6,
      /^module __main__ -> upload -> .text$/,
    ],
    ["an item", "names['text'] = bytes(6 << 20)", 0.001, 6, /^module __main__ -> names$/],
    [
      "a local",
      "kept = bytes(6 << 20)",
      0.001,
      6,
      /^thread server -> frame serve .* -> local kept$/,
    ],
    [
      "a part of a whole",
      "upload.whole = Whole(bytes(6 << 20))",
      0.1,
      5,
      /^module __main__ -> upload -> .whole -> .part -> .texts -> dict\["large"\]$/,
    ],
  ])("%s", async (_name, statement, seconds, least, path) => {
    waiting = await startPython(interpreter, renewing(statement, seconds));
    const swelling = { least: 6 << 20, most: 7 << 20 };
    const sites = [{ site: "text", python: false, addresses: [GONE], swelling }];
    mostOf(
      least,
      () => lookUpHolders({ pid: waiting.pid, sites, unsampled: null }).batch?.rows[0]?.path,
      (words) => path.test(words?.join(" -> ") ?? ""),
    );
  });

  // Up to 3.10, a running frame does not show where its values end, so such a holder is looked up once more.
  const namesTop = !/^3\.(?:9|10)\./.test(version);
  test.runIf(namesTop)("a stale word on a stack does not name a function", async () => {
    waiting = await startPython(interpreter, reusing);
    const addresses = waiting.said as unknown as number[];
    const sites = [{ site: "text", python: false, addresses, swelling: null }];
    const [row] = lookUpHolders({ pid: waiting.pid, sites, unsampled: null }).batch?.rows ?? [];
    expect(row?.path.join(" -> ")).not.toMatch(/frame|thread server/);
    expect(row?.held, JSON.stringify(row)).toBe(1);
  });

  test("items that a tuple has taken over from its predecessor", async () => {
    waiting = await startPython(interpreter, taking);
    const addresses = waiting.said as unknown as number[];
    const swelling = { least: 2 << 20, most: 32 << 20 };
    const sites = [
      { site: "readings", python: true, addresses, swelling: null },
      { site: "tuple", python: true, addresses: [GONE], swelling },
    ];
    // During the takeover both the old and the new tuple hold them; such lookups name no holder.
    mostOf(
      6,
      () => lookUpHolders({ pid: waiting.pid, sites, unsampled: null }).batch?.rows[0],
      (row) => row?.held === 50 && row.path.join(" -> ").startsWith("module __main__ -> state"),
    );
  });
});

test.each(someInterpreters(inject("counts").replacedHolders))(
  "what many threads keep in the same local has them together as its holder, Python $version",
  async (python) => {
    const text = `
parts = []
def note(lines):
    parts.append(id(lines[-1]))
def watch(document):
    lines = [f"{document} {n}" for n in range(50)]
    note(lines)
    threading.Event().wait()
for n in range(12): threading.Thread(target=watch, args=(n,), daemon=True).start()
while len(parts) < 12: pass
say(parts)
say({})
`;
    waiting = await startPython(python, text);
    const addresses = waiting.said as unknown as number[];
    const sites = [{ site: "watch", python: true, addresses, swelling: null }];
    const row = lookUpHolders({ pid: waiting.pid, sites, unsampled: null }).batch?.rows[0];
    expect(row).toMatchObject({ held: 12, type: "list", entries: 0, bound: 0 });
    expect(row?.path).toEqual([
      "each of 12 threads",
      expect.stringMatching(/^frame watch \(/),
      "local lines",
    ]);
    expect(row?.retainedBytes).toBeGreaterThan(12 * 50 * 50);
  },
);
