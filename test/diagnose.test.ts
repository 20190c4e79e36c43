/** Programs that leak and programs that do not, diagnosed as a user would. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
// Built, because the recorder starts threads from its own files.
import { attachAndRecord, CpuBudget, openRecording } from "../dist/record/index.js";
import { present } from "../src/model/base/present.js";
import type { DiagnosisJson } from "../src/model/documents/diagnosis_document.js";
import { python, validate } from "./recorded_app.js";
import { execute, type Outcome, removeScratch, scratch, tidemark } from "./run.js";

const SECONDS = 27;
const leaky = `import sys, time
sessions = {}
def login(number):
    sessions[number] = {"user": f"user-{number}", "token": str(number) * 900}
def handle(number):
    return sum(bytearray(200000)[:100])
number = 0
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    login(number)
    handle(number)
    number += 1
    time.sleep(0.004)
`;

let folder: string;
let ran: Outcome;
const children: ChildProcess[] = [];

beforeAll(async () => {
  folder = scratch();
  writeFileSync(join(folder, "leaky.py"), leaky);
  ran = await execute(
    [tidemark, "run", "-o", "leaky.tidemark", "--", python, "leaky.py", String(SECONDS)],
    { cwd: folder },
  );
});
afterEach(() => {
  for (const child of children.splice(0)) {
    child.kill("SIGKILL");
  }
});
afterAll(removeScratch);

const diagnose = (...words: string[]) => execute([tidemark, "diagnose", ...words], { cwd: folder });

test("run ends with the verdict", () => {
  expect(ran.status).toBe(0);
  expect(ran.stderr).toMatch(/^Verdict +python-leak/m);
  expect(ran.stderr).toContain("login (leaky.py:4)");
});

test("a recording: the kind, the line, the holder, the rate, the advice", async () => {
  const { status, stdout, stderr } = await diagnose("leaky.tidemark", "--json");
  expect([status, stderr]).toEqual([0, ""]);
  const document = validate(stdout, "diagnosis") as unknown as DiagnosisJson;
  expect(document.verdict.kind).toBe("python-leak");
  const [first] = document.suspects;
  expect(first?.stack.some((frame) => frame.function === "login")).toBe(true);
  expect(first?.holder?.path).toContain("sessions");
  expect(first?.growthBytesPerHour).toBeGreaterThan(0);
  expect(first?.advice[0]?.id).toMatch(/^TM-A0\d\d$/);
  expect(document.evidence.some(({ says }) => says === "leak")).toBe(true);
});

test("the types that grow, counted while it ran", async () => {
  const recordingPath = join(folder, "counted.tidemark");
  const leak = spawn(python, ["leaky.py", "280"], { cwd: folder, stdio: "ignore" });
  children.push(leak);
  await once(leak, "spawn");
  // How soon the recorder counts a second time depends on the speed of the machine; here its CPU budget is an hour's.
  const budget = new CpuBudget({ elapsedMs: () => 3_600_000, spentMs: () => 0 });
  await attachAndRecord({
    pid: present(leak.pid),
    recordingPath,
    budget,
    waitMs: 30_000,
    enough: (_, path) => openRecording(path).censuses.length > 1,
  });
  const { census, evidence } = JSON.parse(
    (await diagnose("counted.tidemark", "--json")).stdout,
  ) as DiagnosisJson;
  expect(census?.taken).toBeGreaterThan(1);
  const [first] = census?.types ?? [];
  expect(first?.type).toBe("str");
  // Each login keeps a token of 900 times its number's digits, and the user's name.
  const each = (first?.addedBytes ?? 0) / (first?.addedObjects ?? 1);
  expect(each).toBeGreaterThan(900);
  expect(each).toBeLessThan(2100);
  expect(evidence.find(({ rule }) => rule === "census-growth")).toMatchObject({
    says: "leak",
    detail: expect.stringMatching(/^Two censuses .* apart show growth: str by .* more\)/),
  });
});

/** The sampled objects are small, and lie in larger malloc chunks than they would alone. */
const strings = `import functools, sys, time
class Monitor:
    def __init__(self): self.counts = {}
    def record(self, number):
        for term in range(60): self.counts[f"document-{number:08d}/term-{term:04d}"] = 1
@functools.lru_cache(maxsize=50_000)
def bucket_of(term): return str(term) * 20
def main():
    monitor = Monitor()
    number = 0
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        monitor.record(number)
        bucket_of(number % 20_000)
        number += 1
        time.sleep(0.004)
main()
`;

test("small strings beside a cache with a bound: the dict that keeps them is the holder", async () => {
  writeFileSync(join(folder, "strings.py"), strings);
  await execute(
    [tidemark, "run", "-o", "strings.tidemark", "--", python, "strings.py", String(SECONDS)],
    { cwd: folder },
  );
  const { stdout } = await diagnose("strings.tidemark", "--json");
  const { verdict, suspects } = JSON.parse(stdout) as DiagnosisJson;
  expect(verdict.kind).toBe("python-leak");
  expect(suspects[0]?.stack.some((frame) => frame.function === "Monitor.record")).toBe(true);
  expect(suspects[0]?.holder).toMatchObject({ type: "dict" });
  expect(suspects[0]?.holder?.path.at(-1)).toMatch(/counts/);
});

/** Each message is a few small objects, too few samples to show growth; nearly every sample of their mappings does. */
const shared = `import sys, time
from multiprocessing import shared_memory
blocks = []
def publish(number):
    block = shared_memory.SharedMemory(create=True, size=150_000)
    block.buf[:] = bytes([number % 256]) * block.size
    blocks.append(block)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    publish(len(blocks))
    time.sleep(0.06)
for block in blocks:
    block.close()
    block.unlink()
`;

test("shared memory that is never released: its holder, and the stack that creates it", async () => {
  writeFileSync(join(folder, "shared.py"), shared);
  await execute([tidemark, "run", "-o", "shared.tidemark", "--", python, "shared.py", "36"], {
    cwd: folder,
  });
  const { stdout } = await diagnose("shared.tidemark", "--json");
  const { verdict, suspects } = JSON.parse(stdout) as DiagnosisJson;
  expect(verdict.kind).toBe("shm-growth");
  expect(suspects[0]?.holder?.path).toEqual(["module __main__", "blocks"]);
  expect(suspects[0]?.stack.some((frame) => frame.function === "publish")).toBe(true);
  // Recorded as mappings, although the program unmaps them all before it ends.
  expect(suspects[0]?.domain).toBe("files");
  expect(suspects[0]?.ages[0]?.bytes).toBeGreaterThan(20_000_000);
});

/** A few hundred bytes per socket, and each time a file that is closed again: only open descriptors are attributed. */
const sockets = `import os, socket, sys, time
peers = []
def connect():
    near, far = socket.socketpair()
    peers.append((near, far))
def read_settings():
    with open(__file__) as file:
        return file.read()
def raw_probe():
    return os.open("/proc/self/status", os.O_RDONLY)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    connect() if sys.argv[1] == "objects" else raw_probe()
    read_settings()
    time.sleep(0.08)
`;

test.each([
  ["objects", "connect", "_socket.socket", ["module __main__", "peers"]],
  ["numbers", "raw_probe", undefined, undefined],
])(
  "descriptors that are never closed, kept as %s: the stack that opens them",
  async (kind, opener, type, path) => {
    writeFileSync(join(folder, "sockets.py"), sockets);
    const recording = `${kind}.tidemark`;
    await execute([tidemark, "run", "-o", recording, "--", python, "sockets.py", kind, "20"], {
      cwd: folder,
    });
    const { stdout } = await diagnose(recording, "--json");
    const { verdict, suspects } = JSON.parse(stdout) as DiagnosisJson;
    expect(verdict.kind).toBe("handle-leak");
    expect(suspects[0]?.stack.some((frame) => frame.function === opener)).toBe(true);
    expect([suspects[0]?.type, suspects[0]?.holder?.path]).toEqual([type, path]);
  },
);

test("the text has the same content, with code before and after", async () => {
  const { stdout } = await diagnose("leaky.tidemark");
  expect(stdout).toMatch(/^Verdict +python-leak \(\d+ % sure\)/);
  expect(stdout).toMatch(/^Held by +.*sessions/m);
  expect(stdout).toMatch(/^ +- .*\n +\+ /m);
  expect((await diagnose("leaky.tidemark", "--quiet")).stdout).not.toContain("Suspect");
});

test("--fail-on exits with 1 if the verdict is one of its kinds, otherwise with 0", async () => {
  expect((await diagnose("leaky.tidemark", "--fail-on", "python-leak,native-leak")).status).toBe(1);
  expect((await diagnose("leaky.tidemark", "--fail-on", "native-leak")).status).toBe(0);
});

test("a live process: only from outside, and it keeps running", async () => {
  const child = spawn(python, ["leaky.py", "120"], { cwd: folder, stdio: "ignore" });
  children.push(child);
  const words = [String(child.pid), "--no-agent", "--for", "27s", "--json"];
  const { status, stdout } = await diagnose(...words);
  expect(status).toBe(0);
  const document = validate(stdout, "diagnosis") as unknown as DiagnosisJson;
  expect(document.limits.join(" ")).toContain("No agent ran");
  expect(document.verdict.kind).toBe("python-leak");
  // No stack was sampled, so it names the line that adds the objects.
  const stack = [expect.objectContaining({ function: "login", line: 4 })];
  expect(document.suspects[0]).toMatchObject({ type: expect.any(String), stack, ages: [] });
  const paths = document.suspects.map(({ holder }) => holder?.path.join(" ") ?? "");
  expect(paths.join(" ")).toMatch(/sessions|counts/);
  expect(document.evidence.find(({ rule }) => rule === "census-growth")?.says).toBe("leak");
  expect(document.window.points).toBeGreaterThan(4);
  expect(child.exitCode).toBeNull();
});

test("a process that does not run Python is refused at once, unless it is to be watched from outside", async () => {
  const sleeping = spawn("sleep", ["600"], { stdio: "ignore" });
  children.push(sleeping);
  await once(sleeping, "spawn");
  const { status, stdout, stderr } = await diagnose(String(sleeping.pid), "--quiet");
  expect([status, stdout]).toEqual([4, ""]);
  expect(stderr).toMatch(/^tidemark: TM-E022 no Python interpreter found in process \d+.*\n$/);
});

test.each([
  [["missing.tidemark"], 2, /TM-E003/],
  [["leaky.py"], 2, /TM-E007/],
  [["leaky.tidemark", "--fail-on", "leak"], 2, /--fail-on takes verdicts such as .*, not 'leak'/],
  [["leaky.tidemark", "--for", "soon"], 2, /a duration such as/],
  [["4194305", "--no-agent", "--for", "2s"], 4, /TM-E020/],
  [["4194305", "--for", "2s"], 4, /TM-E0[23]0/],
])("%j: one clear line", async (words, expected, message) => {
  const { status, stdout, stderr } = await diagnose(...words);
  expect([status, stdout]).toEqual([expected, ""]);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  expect(stderr).toMatch(message);
});
