/** Who holds objects of a program that runs on while its heap is copied, and moves what it holds all the time. */
import { afterEach, expect, test } from "vitest";
import { lookUpHolders } from "../../src/record/holder_lookup.js";
import { anyInterpreter } from "../environment.js";
import { startPython, type Waiting } from "../python_program.js";

/** `grow` and `shrink`: each gets a new table every few thousand items. */
const program = (made: string, grow: string, shrink: string) => `
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
const LOOKS = 12;
let waiting: Waiting;
afterEach(async () => await waiting.stop());

test.each([
  ["list", "list(items)", "held.append(None)", "del held[100:]"],
  ["dict", "dict(enumerate(items))", "held[n] = None", "for n in range(100, 60_000): del held[n]"],
  ["set", "set(items)", "held.add(n)", "for n in range(100, 60_000): held.discard(n)"],
])("a %s that moves while the heap is copied is the holder all the same", async (type, ...how) => {
  waiting = await startPython(anyInterpreter(), program(...(how as [string, string, string])));
  const addresses = waiting.said as unknown as number[];
  await waiting.go();
  for (let n = 0; n < LOOKS; n++) {
    const sites = [{ site: "items", python: true, addresses }];
    const { batch } = lookUpHolders({ pid: waiting.pid, sites, handles: null });
    expect(batch?.rows).toMatchObject([{ held: 100, path: ["module __main__", "held"], type }]);
  }
});
