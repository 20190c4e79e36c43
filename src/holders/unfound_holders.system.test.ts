/** What a lookup reports about memory that no Python object within its reach holds. */
import { afterEach, expect, test } from "vitest";
import { environment, someInterpreters } from "../../test/environment.js";
import { startPython, type Waiting } from "../../test/python_program.js";
import { present } from "../model/base/present.js";
import { lookUpHolders } from "./holder_lookup.js";
import { sitesOfProgram } from "./sites_of_program.fixture.js";

let waiting: Waiting;
afterEach(async () => await waiting.stop());

function lookUp(python: boolean) {
  const { pid, said } = waiting;
  const sites = sitesOfProgram(said, python);
  const { batch } = lookUpHolders({ pid, sites, unsampled: null });
  return new Map(present(batch).rows.map((row) => [row.site, row]));
}

/** Both kinds of objects have one reference too many; only the addresses of the first are kept. */
const REFERENCES = `
class Part:
    __slots__ = ()
def made():
    part = Part()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(part))
    return id(part) ^ 0x5555_0000_0000
kept = [made() for n in range(40)]
lost = [made() for n in range(40)]
table = libc.malloc(40 * 8)
for n in range(40):
    ctypes.c_size_t.from_address(table + n * 8).value = kept[n] ^ 0x5555_0000_0000
say({name: [one ^ 0x5555_0000_0000 for one in masked] for name, masked in (("kept", kept), ("lost", lost))})
`;

test.each(someInterpreters(2))(
  "objects without a holder: only those whose address is nowhere are unreferenced, Python $version",
  async (interpreter) => {
    waiting = await startPython(interpreter, REFERENCES);
    const rows = lookUp(true);
    expect(rows.get("kept")).toMatchObject({ looked: 40, held: 0, unreferenced: 0 });
    // A word that is left on the stack may have the address of the last ones.
    expect(rows.get("lost")?.unreferenced).toBeGreaterThanOrEqual(36);
  },
);

/** SQLite puts a word before each block, and its cache points to a header inside each page. */
const DATABASE = `
import re, sqlite3
class Audit:
    def __init__(self):
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table events(id integer, body text)")
audit = Audit()
for n in range(1000):
    audit.db.execute("insert into events values(?, ?)", (n, f"body {n} " * 400))
pages = set()
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps:
        if "[heap]" not in line:
            continue
        low, high = (int(part, 16) for part in line.split()[0].split("-"))
        memory.seek(low)
        text = memory.read(high - low)
        for n in range(100, 900, 20):
            at = text.find(f"body {n} body {n} ".encode()) // 16 * 16
            for start in range(at, max(16, at - 4600), -16):
                size = int.from_bytes(text[start - 8 : start], "little")
                if 4096 <= size <= 5000 and size % 16 in (1, 5):
                    pages.add(low + start)
                    break
del text
say({"pages": sorted(pages)})
`;

test.skipIf(environment.packagesPython === null)(
  "the pages of a database belong to its connection",
  async () => {
    waiting = await startPython({ path: present(environment.packagesPython) }, DATABASE);
    const row = present(lookUp(false).get("pages"));
    expect(row.looked).toBeGreaterThan(10);
    expect(row.held).toBeGreaterThan(0.7 * row.looked);
    expect(row.path).toEqual(["module __main__", "audit", ".db"]);
    expect(row).toMatchObject({ type: "sqlite3.Connection", entries: 0 });
  },
);

const RESULTS = `
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for n in range(40):
    shell.run_cell(f"[float(i + {n}) for i in range(500)]", store_history=True, silent=False)
results = [shell.user_ns["Out"][n] for n in sorted(shell.user_ns["Out"])]
say({"results": [id(result[250]) for result in results]})
`;

test.skipIf(environment.packagesPython === null)(
  "results of cells are kept by IPython",
  async () => {
    const program = `import os, sys\nos.dup2(os.open(os.devnull, os.O_WRONLY), 2)\nsys.stdout = sys.stderr\n${RESULTS.replace("results = [", "results = (").replace('user_ns["Out"])]', 'user_ns["Out"]))')}`;
    waiting = await startPython({ path: present(environment.packagesPython) }, program);
    const row = present(lookUp(true).get("results"));
    expect(row).toMatchObject({ looked: 40, held: 40, path: ["IPython", "Out"], entries: 40 });
  },
);
