import { describe, expect, test } from "vitest";
import type { FrameJson } from "./documents.js";
import { isOwn, isTidemark, ownFrame, recurringFile } from "./own_code.js";

const LIB = "/usr/lib/python3.12";

/** "function file", leaf first. */
function stack(...frames: string[]): FrameJson[] {
  return frames.map((text) => {
    const [, name = "", file = ""] = /^(\S+) (.*)$/.exec(text) ?? [];
    return { function: name, file, line: 1, kind: file.includes(".so") ? "native" : "python" };
  });
}

const named = (...frames: string[]) => ownFrame(stack(...frames))?.function;

describe("the frame that a stack is attributed to", () => {
  test("the nearest frame of the program's own code, beyond library frames", () => {
    expect(
      named(
        "malloc /lib/libc.so.6",
        `loads ${LIB}/json/decoder.py`,
        "parse /srv/app.py",
        "main /srv/app.py",
      ),
    ).toBe("parse");
  });

  test("a thread, a task and a forked worker begin where they were started", () => {
    const below = ["main /srv/app.py"];
    expect(named(`get ${LIB}/queue.py`, `Thread.run ${LIB}/threading.py`, ...below)).toBe("get");
    expect(
      named(`read ${LIB}/asyncio/streams.py`, `Handle._run ${LIB}/asyncio/events.py`, ...below),
    ).toBe("read");
    for (const bootstrap of ["_bootstrap", "BaseProcess._bootstrap"]) {
      const worker = [`${bootstrap} ${LIB}/multiprocessing/process.py`, ...below];
      expect(named(`_worker_loop ${LIB}/site-packages/torch/worker.py`, ...worker)).toBe(
        "_worker_loop",
      );
      expect(named("rank /srv/jobs.py", ...worker)).toBe("rank");
    }
    expect(
      named(
        `dump ${LIB}/multiprocessing/reduction.py`,
        `BaseProcess.start ${LIB}/multiprocessing/process.py`,
        ...below,
      ),
    ).toBe("main");
  });

  test("run-time compiled code counts for its caller, unless the whole program is such code", () => {
    expect(named("__init__ <string>", "record /srv/app.py", "main /srv/app.py")).toBe("record");
    expect(
      named("root <template>", `render ${LIB}/site-packages/jinja2/x.py`, "page /srv/a.py"),
    ).toBe("page");
    expect(named("work <string>", "<module> <string>")).toBe("work");
  });

  test("a notebook cell is a separate site, whichever file runs it", () => {
    const cell = "cell <ipython-input-3-ab12>";
    expect(named(cell, `run ${LIB}/site-packages/IPython/x.py`)).toBe("cell");
    expect(named(cell, `run ${LIB}/site-packages/IPython/x.py`, "main /srv/a.py")).toBe("cell");
    expect(named("cell /tmp/ipykernel_42/77.py", "main /srv/a.py")).toBe("cell");
  });
});

describe("repeatedly compiled code", () => {
  test("counts as one file", () => {
    const one = (a: string, b: string) => expect(recurringFile(a)).toBe(recurringFile(b));
    one("<ipython-input-3-ab12cd34ef56>", "<ipython-input-17-0123456789ab>");
    one("/tmp/ipykernel_4242/1029384756.py", "/tmp/ipykernel_4242/56473829.py");
    one("<string-12>", "<string-345>");
    one("<template 0x7f1200aa>", "<template 0x7f5500bb>");
    one("/tmp/job_17/step_3.py", "/tmp/job_18/step_4.py");
  });

  test("while files of a program stay separate", () => {
    expect(recurringFile("/srv/app/v1.py")).not.toBe(recurringFile("/srv/app/v2.py"));
    expect(recurringFile("<string>")).not.toBe(recurringFile("<stdin>"));
  });
});

test("Tidemark's own code in the process is recognized by its file", () => {
  expect(isTidemark(stack("answer <tidemark>", "<module> <string>"))).toBe(true);
  expect(isTidemark(stack("answer <string>", "<module> /srv/tidemark/app.py"))).toBe(false);
});

test.each([
  ["load /srv/app/loader.py", true],
  ["<module> <string>", true],
  ["load /srv/app/bin/tool.py", true],
  ["<module> /srv/.venv/bin/pytest", false],
  ["loads /usr/lib/python3.11/json/decoder.py", false],
  ["loads /opt/py/lib/python3.13t/json/decoder.py", false],
  ["genfromtxt /srv/.venv/lib/python3.11/site-packages/numpy/npyio.py", false],
  ["x /usr/lib/python3/dist-packages/apt/cache.py", false],
  ["run /srv/app.zip/run.py", false],
  ["_find <frozen importlib._bootstrap>", false],
  ["malloc /lib/libc.so.6", false],
])("%s is the program's own code: %s", (text, own) => {
  expect(stack(text).map(isOwn)).toEqual([own]);
});
