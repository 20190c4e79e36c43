/** Compares stacks that are read from outside with those that the program itself reports, for every interpreter. */

import { afterEach, expect, test } from "vitest";
import { environment } from "../../../test/environment.js";
import { startPython, type Waiting } from "../../../test/python_program.js";
import { pausedByOther } from "../../linux/hold/other_tracer.fixture.js";
import { openProcessMemory, readStat } from "../../linux/index.js";
import { present } from "../../model/base/present.js";
import { locatePython, type PythonFrame, readStacks, type Stacks } from "../index.js";

const started: Waiting[] = [];
afterEach(async () => {
  for (const program of started.splice(0)) {
    await program.stop();
  }
});

const interpreters = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);

async function startProgram(interpreter: (typeof interpreters)[number], source: string) {
  const program = await startPython(interpreter, source);
  started.push(program);
  return program;
}

async function stacksOf(pid: number): Promise<Stacks> {
  const memory = openProcessMemory(pid);
  try {
    return await readStacks(locatePython(memory));
  } finally {
    memory.close();
  }
}

type Row = [string, string, number];
const rowsOf = (frames: readonly PythonFrame[]): Row[] =>
  frames.map(({ code, line }) => [code.function, code.file, line]);

/** Threads in every kind of frame; `stacks()` returns the interpreter's own answer, by thread id. */
const ODD_STACKS = `
import contextlib, functools, time
gate = threading.Barrier(9)
def stop():
    gate.wait()
    threading.Event().wait()
class Café:
    class Inner:
        def method(self, depth):
            if depth:
                return self.method(
                    depth - 1,
                )
            [None for _ in [1]
             if stop()]
    def __getattr__(self, name):
        stop()
    def __lt__(self, other):
        try:
            raise ValueError
        except ValueError:
            with contextlib.suppress(KeyError):
                stop()
def generator():
    yield 1
    yield from (stop() for _ in [1])
def decorated(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return (
            f
            (*args)
        )
    return wrapper
@decorated
def 名前(x=1):


    stop()
def in_class():
    class Body:
        x = 1
        stop()
async def coroutine():
    await inner_coroutine()
async def inner_coroutine():
    stop()
def long_function():
    x = 0
${"    x += 1\n".repeat(400)}
    stop()
work = [lambda: Café.Inner().method(150), lambda: getattr(Café(), "x"), lambda: sorted([Café(), Café()]),
        lambda: list(generator()), lambda: 名前(), in_class, lambda: coroutine().send(None), long_function]
for f in work:
    threading.Thread(target=f, name="w:" + getattr(f, "__name__", ""), daemon=True).start()
gate.wait()
def stacks():
    def row(f):
        code = f.f_code
        return [getattr(code, "co_qualname", code.co_name), code.co_filename, f.f_lineno or 0]
    result = {}
    for thread in threading.enumerate():
        f = sys._current_frames()[thread.ident]
        rows = []
        while f:
            rows.append(row(f))
            f = f.f_back
        result[thread.native_id] = {"name": thread.name, "rows": rows}
    return result
settled = None
while settled != (settled := stacks()):
    time.sleep(0.2)
say(settled)
`;

test.each(interpreters)(
  "Python $version at $path: names, files and lines of all threads",
  async (interpreter) => {
    const program = await startProgram(interpreter, ODD_STACKS);
    const truth = program.said as Record<string, { name: string; rows: Row[] }>;
    const seen = await stacksOf(program.pid);
    expect(seen.limits).toEqual([]);
    expect(seen.pauseMs).toBeGreaterThan(0);
    expect(seen.threads).toHaveLength(9);
    for (const { thread, frames } of seen.threads) {
      const { name, rows } = truth[thread.tid ?? 0] ?? { name: "", rows: [] };
      expect(thread.name).toBe(name);
      expect(thread.task?.tid).toBe(thread.tid);
      // The main thread has returned from stacks() and is now in say().
      const main = thread.tid === program.pid;
      expect(
        rowsOf(frames)
          .slice(main ? 2 : 0)
          .map(main ? withoutLine : whole),
      ).toEqual(rows.slice(main ? 2 : 0).map(main ? withoutLine : whole));
    }
  },
);

const withoutLine = ([name, file]: Row): (string | number)[] => [name, file];
const whole = (row: Row): (string | number)[] => row;

const TASKS = `
import asyncio
ready = []
async def leaf():
    ready.append(1)
    await asyncio.sleep(1000)
async def middle():
    await leaf()
async def stream():
    await leaf()
    yield 1
async def over_stream():
    async for _ in stream():
        pass
async def parent():
    await asyncio.create_task(middle(), name="child")
async def gatherer():
    await asyncio.gather(middle(), parent())
async def main():
    asyncio.create_task(over_stream(), name="over")
    asyncio.create_task(gatherer(), name="gatherer")
    while len(ready) < 3:
        await asyncio.sleep(0.01)
    say(sorted(task.get_name() for task in asyncio.all_tasks()))
asyncio.run(main())
`;

test.each(interpreters)(
  "Python $version at $path: asyncio's tasks, what each awaits and waits for",
  async (interpreter) => {
    const program = await startProgram(interpreter, TASKS);
    const { tasks, limits } = await stacksOf(program.pid);
    expect(limits).toEqual([]);
    expect(tasks.map(({ name }) => name).sort()).toEqual(program.said);
    const byName = new Map(tasks.map((task) => [task.name, task]));
    const names = (name: string) => byName.get(name)?.frames.map(({ code }) => code.function);
    expect(names("child")).toEqual(["sleep", "leaf", "middle"]);
    expect(names("over")).toEqual(["sleep", "leaf", "stream", "over_stream"]);
    expect(names("gatherer")).toEqual(["gatherer"]);
    const waiters = byName.get("gatherer")?.waitsFor.map((id) =>
      tasks
        .find(({ address }) => address === id)
        ?.frames.map(({ code }) => code.function)
        .at(-1),
    );
    expect(waiters).toEqual(["middle", "parent"]);
    const main = tasks.filter(({ runsOn }) => runsOn !== null);
    expect(main.map(({ frames }) => frames.at(-1)?.code.function)).toEqual(["main"]);
  },
);

const CHURN = `
import time
def turn(n):
    exec(compile("def f(n):\\n  return f(n - 1) if n else sum(range(500))", "<churn>", "exec"), space := {})
    space["f"](n)
def churn():
    while True:
        for n in range(30):
            turn(n)
def come_and_go():
    while True:
        threads = [threading.Thread(target=turn, args=(9,)) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
threading.Thread(target=come_and_go, daemon=True).start()
os.write(1, b"1\\n")
churn()
`;

test.each(interpreters)(
  "Python $version at $path: code that is created and freed all the time, threads that start and end",
  async (interpreter) => {
    const program = await startProgram(interpreter, CHURN);
    const known = /^(turn|f|churn|come_and_go|<module>|<listcomp>|exec|_?\w+|\w+(\.\w+|\.<\w+>)*)$/;
    for (let count = 0; count < 10; count++) {
      const { threads } = await stacksOf(program.pid);
      const main = threads.find(({ thread }) => thread.tid === program.pid);
      expect(main?.frames.at(-1)?.code.function).toBe("<module>");
      for (const { code } of threads.flatMap(({ frames }) => frames)) {
        expect(code.function).toMatch(known);
      }
    }
  },
);

test("the holder of the GIL, and a program that is traced already: read while it runs", async () => {
  const interpreter = present(interpreters.at(-1));
  const program = await startProgram(
    interpreter,
    `
def wait(): threading.Event().wait()
threading.Thread(target=wait, daemon=True).start()
os.write(1, b"1\\n")
while True: pass
`,
  );
  const { threads } = await stacksOf(program.pid);
  expect(threads.map(({ thread }) => [thread.tid === program.pid, thread.holdsGil])).toEqual([
    [true, true],
    [false, false],
  ]);
  const release = await pausedByOther(program.pid);
  try {
    const seen = await stacksOf(program.pid);
    expect(seen.pauseMs).toBe(0);
    expect(seen.limits.join()).toMatch(/read while it ran.*traced/);
    expect(seen.threads.map(({ frames }) => frames.at(-1)?.code.function)).toEqual([
      "<module>",
      threads[1]?.frames.at(-1)?.code.function,
    ]);
  } finally {
    await release();
  }
});

test.each(interpreters.filter(({ version }) => /^3\.(9|11|13|15)/.test(version)))(
  "Python $version at $path: 200 threads; a program that is stopped stays so",
  async (interpreter) => {
    const program = await startProgram(
      interpreter,
      `
gate = threading.Barrier(201)
def body(n): gate.wait(); threading.Event().wait()
threading.stack_size(256 * 1024)
for n in range(200): threading.Thread(target=body, args=(n,), name=f"t{n}", daemon=True).start()
gate.wait()
say(len(threading.enumerate()))
`,
    );
    process.kill(program.pid, "SIGSTOP");
    await expect.poll(() => stateOf(program.pid)).toBe("T");
    const { threads } = await stacksOf(program.pid);
    expect(new Set(threads.map(({ thread }) => thread.tid)).size).toBe(201);
    expect(threads.map(({ thread }) => thread.name).sort()).toEqual(
      ["MainThread", ...Array.from({ length: 200 }, (_, n) => `t${n}`)].sort(),
    );
    // When released, each thread wakes up only to stop again.
    await expect.poll(() => stateOf(program.pid)).toBe("T");
  },
);

function stateOf(pid: number): string {
  return readStat(pid)?.state ?? "";
}

test.each(interpreters.filter(({ version }) => !/^3\.(9|1[01])\./.test(version)))(
  "Python $version at $path: subinterpreters",
  async (interpreter) => {
    const program = await startProgram(
      interpreter,
      `
try: import _interpreters as subs
except ImportError: import _xxsubinterpreters as subs
reader, writer = os.pipe()
code = f"def inside():\\n  import os; os.write({writer}, b'x'); os.read(os.pipe()[0], 1)\\ninside()"
run = getattr(subs, "exec", None) or subs.run_string
sub = subs.create()
threading.Thread(target=lambda: run(sub, code), daemon=True).start()
os.read(reader, 1)
say(1)
`,
    );
    const memory = openProcessMemory(program.pid);
    const python = locatePython(memory);
    expect(python.interpreters).toHaveLength(2);
    const { threads } = await readStacks(python);
    memory.close();
    const inner = threads.filter(({ thread }) => thread.interpreter === python.interpreters[1]);
    expect(inner.some(({ frames }) => frames[0]?.code.function === "inside")).toBe(true);
  },
);
