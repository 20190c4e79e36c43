/** A heap that is larger than the window through which a lookup reads it. */
import { afterEach, expect, test } from "vitest";
import { someInterpreters } from "../../test/environment.js";
import { startPython, type Waiting } from "../../test/python_program.js";
import { countGraph } from "../cpython/heap/census/type_counts.js";
import { findObjects, holderOf, takeGraph } from "../cpython/heap/index.js";
import { openProcessMemory } from "../linux/index.js";
import { present } from "../model/base/present.js";
import { censusBatch } from "../recording/census_batch.js";
import { lookUpHolders } from "./holder_lookup.js";
import { sitesOfProgram } from "./sites_of_program.fixture.js";

/** About 80 MiB, and containers of every kind whose tables are larger than the window's blocks. */
const PROGRAM = `
import collections
class Session:
    def __init__(self, n): self.name = f"session {n}"; self.history = [float(n), (n, str(n))]
class Slotted:
    __slots__ = ("value", "before")
    def __init__(self, value, before): self.value = value; self.before = before
records = [{"name": f"record {n}", "id": n + 1000, "score": n / 3} for n in range(160_000)]
by_name = {record["name"]: record for record in records}
sessions = {n: Session(n) for n in range(20_000)}
seen = {f"seen {n}" for n in range(30_000)}
queue = collections.deque(bytes(100 + n % 100) for n in range(30_000))
chain = None
for n in range(20_000): chain = Slotted(n + 1000, chain)
def some(values, many=40):
    values = list(values)
    return [id(value) for value in values[:: len(values) // many]]
links = []
link = chain
while link is not None:
    links.append(id(link))
    link = link.before
say({
    "records": some(record["score"] for record in records),
    "sessions": some(session.history for session in sessions.values()),
    "seen": some(seen),
    "queue": some(queue),
    "chain": links[::500],
})
`;

let waiting: Waiting;
afterEach(async () => await waiting.stop());

test.each(someInterpreters(3))(
  "a lookup in a large heap of Python $version finds what a copy shows",
  async (interpreter) => {
    waiting = await startPython(interpreter, PROGRAM);
    const { pid, said } = waiting;
    const sites = sitesOfProgram(said);
    const found = lookUpHolders({ pid, sites, unsampled: null });
    const memory = openProcessMemory(pid);
    const { objects } = await takeGraph(memory, { maxPauseMs: 60_000 }, 0);
    memory.close();
    expect(objects.copy.bytes).toBeGreaterThan(64 * 2 ** 20);
    expect(found.objects).toBe(objects.graph.nodes - objects.graph.firstObject);
    expect(found.census).toEqual(censusBatch(pid, countGraph(objects)));
    for (const { site, addresses } of sites) {
      const row = present(found.batch?.rows.find((one) => one.site === site));
      const nodes = findObjects(objects, addresses).map(({ node }) => node);
      const { path, type, retainedBytes, entries } = present(holderOf(objects, nodes));
      expect(row).toMatchObject({ held: addresses.length, path, type, retainedBytes, entries });
    }
  },
);

test("of a program that ends during a lookup, objects never look like garbage", async () => {
  const [interpreter] = someInterpreters(1);
  for (const seconds of [0.1, 0.3, 0.5, 0.8]) {
    // The time begins when it has everything to say.
    const exit = `import os, threading; threading.Timer(${seconds}, os._exit, [0]).start()`;
    const program = `${PROGRAM.replace("say({", "said = ({")}\n${exit}\nsay(said)\n`;
    waiting = await startPython(present(interpreter), program);
    const { pid, said } = waiting;
    const addresses = said.records as number[];
    const site = { site: "records", python: true, addresses, swelling: null };
    const { batch } = lookUpHolders({ pid, sites: [site], unsampled: null });
    // Whole, or not at all.
    expect(batch === null ? [] : batch.rows).toMatchObject(
      batch === null ? [] : [{ held: addresses.length, garbage: 0 }],
    );
    await waiting.stop();
  }
});

test("a heap with more objects than a lookup may read is refused, and nothing else is", async () => {
  waiting = await startPython(present(someInterpreters(1)[0]), "say({})\n");
  const request = { pid: waiting.pid, sites: [], unsampled: null };
  const { objects, refusal } = lookUpHolders(request);
  expect(refusal).toBeNull();
  expect(lookUpHolders(request, objects - 1_000)).toEqual({
    batch: null,
    census: null,
    objects: 0,
    refusal: `the heap has more than ${(objects - 1_000).toLocaleString("en-US")} objects`,
  });
});
