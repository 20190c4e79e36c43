/** Threads are shown with the names that the program gave them, not the kernel's names. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { anyInterpreter, environment } from "../environment.js";
import { readText, record, removeScratch as removeRecordings, until } from "../run.js";
import { attach, killAll, nameOf, profileSoFar, removeScratch, scratch, start } from "./targets.js";

afterEach(killAll);
afterAll(removeScratch);
afterAll(removeRecordings);

/** Names that the kernel would truncate or not know, and a thread that was not created by threading; each allocates
 * until the program's input ends, or a file exists. */
const PROGRAM = `
import _thread, os, sys, threading, time
def work():
    kept = []
    while True:
        kept.append(bytearray(50_000))
        if len(kept) > 100: del kept[:]
        time.sleep(0.002)
for name in ("load orders of customers", "send \\u00e9v\\u00e9nements"):
    threading.Thread(target=work, name=name, daemon=True).start()
_thread.start_new_thread(work, ())
print("up", flush=True)
if len(sys.argv) > 1:
    while not os.path.exists(sys.argv[1]): time.sleep(0.05)
else:
    for line in sys.stdin: pass
print("well")
`;
const GIVEN = ["load orders of customers", "send événements"];

/** Names of the threads in a recording so far, except the main thread. */
function namesIn(path: string): string[] {
  const threads = profileSoFar(path)?.threads ?? [];
  return threads.filter(({ tid, isMain }) => tid !== 0 && !isMain).map(({ name }) => name);
}

const hasAll = (names: readonly string[]) =>
  names.length >= 3 && GIVEN.every((name) => names.includes(name));

describe.each(
  environment.interpreters
    .filter(({ freeThreaded }) => !freeThreaded)
    .map((one) => [nameOf(one), one] as const),
)("%s", (_name, interpreter) => {
  test("of a program that is attached to", async () => {
    const target = await start(interpreter, PROGRAM);
    const recordingPath = join(scratch, `${target.pid}.tidemark`);
    await attach(target.pid, {
      recordingPath,
      // Names are read every second at first.
      enough: (elapsedMs) =>
        elapsedMs > 1500 && (elapsedMs > 30_000 || hasAll(namesIn(recordingPath))),
    });
    const names = namesIn(recordingPath);
    expect(names).toEqual(expect.arrayContaining(GIVEN));
    // A thread that threading does not know has the kernel's name, which is that of the program.
    expect(names.filter((name) => !GIVEN.includes(name))).toEqual([expect.stringMatching(/^py/)]);
    target.child.stdin?.end();
    expect(await target.ended()).toEqual({ code: 0, signal: null });
  });
});

test("of a program that was started under it", async () => {
  const [recording, end] = [join(scratch, "run.tidemark"), join(scratch, "end")];
  const outcome = await record([anyInterpreter().path, "-c", PROGRAM, end], {
    recording,
    started: async (_child, { stdout }) => {
      await until(() => readText(stdout).includes("up"));
      await until(() => hasAll(namesIn(recording)));
      writeFileSync(end, "");
    },
  });
  expect(outcome.stdout).toContain("well");
  expect(namesIn(recording)).toEqual(expect.arrayContaining(GIVEN));
});
