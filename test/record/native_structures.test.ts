/** Holders of native memory that is deep inside C data structures. */
import { afterEach, describe, expect, test } from "vitest";
import { lookUpHolders } from "../../src/holders/holder_lookup.js";
import { environment } from "../environment.js";
import { startPython, type Waiting } from "../python_program.js";

/** Chains of blocks, each referenced only by the one before it; rings that nothing references; and blocks of Python's
 * allocator that contain no object. */
const program = `
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
WORDS = 50
def block(leads_to):
    address = libc.malloc(8 * WORDS)
    words = (ctypes.c_void_p * WORDS).from_address(address)
    for n in range(WORDS):
        words[n] = None
    words[WORDS - 1] = leads_to
    return address
def chain():
    deepest = address = block(None)
    for _ in range(12):
        address = block(address)
    return ctypes.c_void_p(address), hex(deepest)
class Session:
    def __init__(self):
        self.handle, self.deepest = chain()
sessions = [Session() for _ in range(40)]
deepest = [session.__dict__.pop("deepest") for session in sessions]
lost = []
for _ in range(40):
    first = block(None)
    (ctypes.c_void_p * WORDS).from_address(first)[3] = block(first)
    lost.append(hex(first))
first = None
# Objects that a structure of C's alone refers to, as a library's buffer does to bytes that it was given.
class Reader:
    def __init__(self, number):
        row = {"number": number}
        self.row = hex(id(row))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(row))
        self.handle = ctypes.c_void_p(block(block(id(row))))
readers = [Reader(number) for number in range(40)]
rows = [reader.__dict__.pop("row") for reader in readers]
ctypes.pythonapi.PyObject_Malloc.restype = ctypes.c_void_p
raw = [hex(ctypes.pythonapi.PyObject_Malloc(ctypes.c_size_t(400))) for _ in range(40)]
for address in raw:
    ctypes.memset(int(address, 16), 1, 400)
say({"deepest": deepest, "lost": lost, "raw": raw, "rows": rows})
`;
/** A stale word in the unused part of a block may point to something. */
const STRAY = 2;
let waiting: Waiting;
afterEach(async () => await waiting.stop());

describe.each(
  environment.interpreters
    .filter(({ chroot, freeThreaded }) => !chroot && !freeThreaded)
    .map((interpreter) => [interpreter.version, interpreter] as const),
)("Python %s", (_version, interpreter) => {
  test("a chain of native blocks is held by the objects at its start; a ring of blocks, and raw blocks, have no holder", async () => {
    waiting = await startPython(interpreter, program);
    const {
      deepest,
      lost,
      raw,
      rows: ofRows,
    } = waiting.said as Record<"deepest" | "lost" | "raw" | "rows", string[]>;
    const sites = [
      { site: "rows", python: true, addresses: ofRows.map(Number), swelling: null },
      { site: "deepest", python: false, addresses: deepest.map(Number), swelling: null },
      { site: "lost", python: false, addresses: lost.map(Number), swelling: null },
      { site: "raw", python: true, addresses: raw.map(Number), swelling: null },
    ];
    const rows = lookUpHolders({ pid: waiting.pid, sites, unsampled: null }).batch?.rows;
    const [referred, ofChains, ...ofOthers] = rows ?? [];
    expect(referred).toMatchObject({ looked: 40, held: 40, path: ["module __main__", "readers"] });
    expect(ofChains).toMatchObject({ looked: 40, held: 40, path: ["module __main__", "sessions"] });
    for (const row of ofOthers) {
      expect(row).toMatchObject({ looked: 40 });
      expect(row.held, row.site).toBeLessThanOrEqual(STRAY);
    }
    expect(ofOthers).toHaveLength(2);
  });
});
