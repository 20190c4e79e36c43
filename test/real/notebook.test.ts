/** `%load_ext tidemark` in a real kernel, driven by nbclient, and in IPython's terminal. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import { environment } from "../environment.js";
import { execute, removeScratch, repository, scratch } from "../run.js";

afterAll(removeScratch);

const { packagesPython } = environment;
const LOAD = "%load_ext tidemark";

interface Output {
  readonly output_type: string;
  readonly text?: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly ename?: string;
  readonly traceback?: readonly string[];
}

interface Ran {
  readonly number: number;
  readonly outputs: readonly Output[];
}

/** Runs the cells; fails if the kernel leaves a file behind. */
async function notebook(
  cells: readonly string[],
  env: Record<string, string> = {},
): Promise<Ran[]> {
  const folder = scratch();
  const temporary = join(folder, "tmp");
  mkdirSync(temporary);
  const outcome = await execute(
    [present(packagesPython), "-B", join(repository, "test/real/run_notebook.py")],
    {
      cwd: folder,
      env: {
        PYTHONPATH: join(repository, "python"),
        TMPDIR: temporary,
        IPYTHONDIR: folder,
        ...env,
      },
      input: JSON.stringify(cells),
    },
  );
  expect(outcome.status, outcome.stderr).toBe(0);
  expect(readdirSync(temporary).filter((name) => name.startsWith("tidemark"))).toEqual([]);
  return JSON.parse(outcome.stdout) as Ran[];
}

/** The plain text of a cell's outputs; of an error, its type. */
function textOf({ outputs }: Ran): string {
  return outputs
    .map(({ text, data, ename }) => text ?? data?.["text/plain"] ?? ename ?? "")
    .join("\n");
}

/** An error's traceback, without colours. */
function tracebackOf({ outputs }: Ran): string {
  const text = outputs.flatMap(({ traceback = [] }) => traceback).join("\n");
  return stripVTControlCharacters(text);
}

function pageOf({ outputs }: Ran): string {
  const [page] = outputs.flatMap(({ data }) =>
    data?.["text/html"]?.includes("tidemark") ? [data["text/html"]] : [],
  );
  return page ?? "";
}

describe.skipIf(packagesPython === null)("a notebook", () => {
  test("%%tidemark: peak, growth, lines of the cell and of functions in other cells", async () => {
    const [, , cell, nested, called, again, magics, measured] = await notebook([
      LOAD,
      "def load(n):\n    big = bytearray(40 << 20)\n    return [bytes(1000) for _ in range(n)]",
      "%%tidemark --period 1 -o profile\nrows = load(20_000)\ntext = '<script>' * 1_000_000\nlen(rows)",
      "%%time\n%%tidemark\nmore = load(5_000)\nlen(more)",
      "%%tidemark\nonly = load(20_000)",
      "profile.lines()[0].allocated_bytes > 19e6, profile.measurement.peak_growth_bytes > 40e6",
      "\n%%tidemark\n%timeit -n1 -r1 bytearray(9 << 20)\nkept = bytearray(8 << 20)",
      "import tidemark\nprint(tidemark.measure(load, 20_000))\n@tidemark.profile\ndef keep():\n    return bytearray(7 << 20)\nkept = keep()\ntidemark.stop()",
    ] as const);
    const text = textOf(present(cell));
    expect(text).toMatch(/20000/);
    expect(text).toMatch(
      /tidemark In\[3\]: peak RSS .* MiB\), growth \+2[78]\.\d MiB \+-.*, allocated \d+/,
    );
    expect(text).toMatch(/\+[12]\d\.\d MiB .* [56]\d\.\d MiB .*In\[3\]:2 {2}rows = load/);
    expect(text).toMatch(/\+0 B .* 40\.0 MiB .*In\[2\]:2 {2}big = bytearray/);
    expect(text).not.toMatch(/IPython\/|ipykernel/);
    const page = pageOf(present(cell));
    expect(page).toContain("&lt;script&gt;");
    expect(page).not.toMatch(/<script|https?:|src=/);
    expect(page).toContain("len(rows)"); // the whole cell, with bars beside the lines
    expect(textOf(present(nested))).toMatch(/Wall time[\s\S]*5000|5000[\s\S]*Wall time/);
    expect(textOf(present(nested))).toMatch(/In\[4\]:3 {2}more = load/);
    // In a cell that only calls functions, its lines are shown although other code allocates.
    expect(textOf(present(called))).toMatch(/The cell[\s\S]*In\[5\]:2 {2}only = load/);
    expect(textOf(present(again))).toBe("(True, True)");
    // Lines are shown as they were written, not as IPython compiles them.
    expect(textOf(present(magics))).toMatch(/In\[7\]:2 {2}%timeit[\s\S]*In\[7\]:3 {2}kept/);
    expect(pageOf(present(magics))).toContain(">%%tidemark<");
    const printed = textOf(present(measured));
    expect(printed).toMatch(/ In\[2\]:2 {2}big = bytearray/);
    expect(printed).toMatch(/tidemark: keep \(In\[8\]:3\)\n.*\n.* 5 {2}return bytearray/);
    expect(printed).not.toMatch(/ipykernel_\d/);
  });

  test("errors, syntax errors, interrupts and top-level await are those of a cell without it", async () => {
    const cells = await notebook([
      LOAD,
      "%%tidemark\nkept = bytearray(30 << 20)\n1 / 0",
      "%%tidemark\n1 +",
      "%%tidemark\nimport asyncio\nawait asyncio.sleep(0.01)\nkept = bytearray(20 << 20)\nlen(kept)",
      "%%tidemark\n# interrupt\nimport time\nkept = bytearray(30 << 20)\nprint('ready', flush=True)\ntime.sleep(120)",
      "%%tidemark\n# interrupt\nprint('ready', flush=True)\nfor _ in range(600): await asyncio.sleep(0.1)",
      "%%tidemark --period nothing\n1",
      "%%tidemark --nope\n1",
      "%%tidemark\n%%time\nawait asyncio.sleep(0)",
      "%%tidemark\nlen(kept)",
    ]);
    const texts = cells.map(textOf);
    expect(texts[1]).toMatch(/ZeroDivisionError\n/);
    expect(texts[1]).toMatch(
      /The code ended with ZeroDivisionError\.[\s\S]*\+30\.0 MiB .*In\[2\]:2/,
    );
    expect(texts[2]).toBe("SyntaxError");
    expect(texts[3]).toMatch(/20971520[\s\S]*\+20\.0 MiB .*In\[4\]:4/);
    expect(texts[4]).toMatch(/KeyboardInterrupt\n[\s\S]*ended with an interrupt[\s\S]*In\[5\]:4/);
    expect(texts[5]).toMatch(/CancelledError|KeyboardInterrupt/);
    expect(texts[6]).toMatch(/^UsageError: %%tidemark: argument --period: .*'nothing'\s*$/);
    expect(texts[7]).toMatch(/^UsageError: %%tidemark: unrecognized arguments: --nope\s*$/);
    expect(texts[9]).toMatch(/^31457280\ntidemark In\[10\]/);
  });

  test("%tidemark_line: functions of cells and of packages, methods, what they return", async () => {
    const cells = await notebook([
      LOAD,
      "class Model:\n    def fit(self, n):\n        self.rows = [bytes(1000) for _ in range(n)]\n        big = bytearray(40 << 20)\n        return n\nmodel = Model()",
      "%tidemark_line -o value model.fit(20_000)",
      "value",
      "import json\ntext = json.dumps(list(range(500_000, 900_000)))",
      "%tidemark_line -f json.loads rows = json.loads(text)",
      "len(rows)",
      "def fail():\n    kept = bytearray(9 << 20)\n    raise ValueError('no')",
      "%tidemark_line fail",
      "%tidemark_line 3 +",
      "%tidemark_line",
      "%tidemark_line nothing(3)",
      "%tidemark_line len([])",
      "async def later(n):\n    return n\n%tidemark_line later(3)",
      "%tidemark_line -o 3x fail()",
      "%%tidemark --top -3\n1",
    ]);
    const texts = cells.map(textOf);
    expect(texts[2]).toMatch(
      /fit \(In\[2\]:2\)[\s\S]*\+(19|2\d)\.\d MiB .*In\[2\]:3[\s\S]*40\.0 MiB .*In\[2\]:4/,
    );
    expect(pageOf(present(cells[2]))).toContain("return n");
    expect(texts[3]).toBe("20000");
    expect(texts[5]).toMatch(
      /loads \(json\/__init__\.py:\d+\)[\s\S]*MiB .*return _default_decoder/,
    );
    expect(texts[6]).toBe("400000");
    expect(texts[8]).toMatch(
      /The code ended with ValueError\.[\s\S]*9\.00 MiB .*In\[8\]:2[\s\S]*ValueError$/,
    );
    const traceback = tracebackOf(present(cells[8]));
    expect(traceback).toMatch(
      /%tidemark_line>:1\S*\n-+> 1 fail\(\)[\s\S]*raise ValueError\('no'\)/,
    );
    expect(traceback).not.toMatch(/_notebook\.py/);
    expect(texts.slice(9, 16).map((text) => text.trim())).toEqual([
      "UsageError: %tidemark_line: invalid syntax: 3 +",
      "UsageError: %tidemark_line: takes a call, such as %tidemark_line load(path)",
      expect.stringMatching(/^UsageError: %tidemark_line: nothing is not defined/),
      expect.stringMatching(
        /^UsageError: %tidemark_line: len is a builtin_\w+, not a Python function/,
      ),
      "UsageError: %tidemark_line: await the coroutine: %tidemark_line await later(3)",
      "UsageError: %tidemark_line: -o takes the name of a variable",
      expect.stringMatching(/^UsageError: %%tidemark: argument --top: takes a number such as 10/),
    ]);
  });

  test("%tidemark_line awaits a coroutine in the kernel's event loop", async () => {
    const ran = await notebook([
      `${LOAD}\nimport asyncio\nloop = asyncio.get_running_loop()\nasync def fetch(n):\n    await asyncio.sleep(0.01)\n    return [bytes(1000) for _ in range(n)]`,
      "%tidemark_line -o rows await fetch(20_000)\n(len(rows), asyncio.get_running_loop() is loop)",
      "if True:\n    %tidemark_line -e rows = await fetch(5_000)\nlen(rows)",
      "%tidemark_line await fetch('many')",
      "async def parts(n):\n    for _ in range(n):\n        yield bytes(1000)\n%tidemark_line parts(3)",
      "%tidemark_line -f parts [part async for part in parts(3000)]",
    ]);
    const [, kept = ran[0] as Ran, nested, failed, generator, iterated] = ran;
    expect(textOf(kept)).toMatch(/\+(?:1\d|2[0-4])\.\d MiB .*In\[1\]:6 {2}return \[bytes\(1000\)/);
    expect(textOf(kept)).toContain("(20000, True)");
    expect(textOf(nested as Ran)).toMatch(/ +1 +\+[\d.]+ MiB {2}In\[1\]:6[\s\S]*5000/);
    expect(textOf(failed as Ran)).toMatch(/The code ended with TypeError[\s\S]*TypeError/);
    expect(tracebackOf(failed as Ran)).toMatch(/await fetch\('many'\)/);
    expect(tracebackOf(failed as Ran)).not.toMatch(/_notebook\.py/);
    expect(textOf(generator as Ran)).toContain(
      "%tidemark_line -f parts [x async for x in parts(3)]",
    );
    expect(textOf(iterated as Ran)).toMatch(/MiB .*In\[5\]:3 {2}yield bytes\(1000\)/);
  });

  test("%tidemark_line -e: how often each line ran, and its growth per execution", async () => {
    const cells = await notebook([
      LOAD,
      "kept = []\ndef keep(n):\n    for _ in range(n):\n        kept.append(bytearray(10_000))\n",
      "%tidemark_line -e keep(400)",
    ]);
    const text = textOf(present(cells[2]));
    expect(text).toMatch(/times +each +line/);
    expect(text).toMatch(/ 400 +\+(9|10)\.\d+ KiB +In\[2\]:4 {2}kept\.append/);
    expect(pageOf(present(cells[2]))).toContain(">times<");
  });

  test("%tidemark_leaks: the traceback, Out and _ with sizes; each command frees", async () => {
    const GONE = "import gc; gc.collect(); [each() is None for each in watched]";
    const cells = await notebook([
      LOAD,
      "import weakref, numpy\nclass Data(bytearray): pass\nwatched = []\ndef make(mib):\n    data = Data(mib << 20)\n    watched.append(weakref.ref(data))\n    return data\nshared = make(8)",
      "def train():\n    batch = [make(32)]\n    raise ValueError('x')\ntrain()",
      "[make(16)]",
      "view = numpy.zeros(6 << 20, dtype='uint8')[:10]\nview",
      "shared",
      "%tidemark_leaks",
      GONE,
      "%tidemark_leaks --free traceback",
      GONE,
      "%tidemark_leaks --free Out[4]",
      GONE,
      "%tidemark_leaks --free nothing",
      "%tidemark_leaks --fre all",
      "shared = None",
      "%tidemark_leaks --free all",
      GONE,
    ]);
    const texts = cells.map(textOf);
    expect(texts[6]).toMatch(/IPython alone keeps 48\.\d MiB alive/);
    expect(texts[6]).toMatch(
      /32\.0 MiB +traceback +last ValueError: batch of train holds 32\.0 MiB +%tidemark_leaks --free traceback/,
    );
    expect(texts[6]).toMatch(
      /16\.0 MiB +Out\[4\] +list of 1, also ___ +%tidemark_leaks --free Out\[4\]/,
    );
    expect(texts[6]).not.toContain("Out[6]"); // `shared` is the user's own variable
    expect(texts[7]).toBe("[False, False, False]");
    expect(texts[8]).toMatch(/^tidemark: freed traceback: RSS -3\d\.\d MiB/);
    expect(texts[9]).toBe("[False, True, False]");
    expect(texts[11]).toBe("[False, True, True]");
    expect(texts[12]).toMatch(
      /^UsageError: %tidemark_leaks: nothing is kept under 'nothing'; kept are all, Out/,
    );
    expect(texts[13]).toMatch(/^UsageError: %tidemark_leaks: unrecognized arguments: --fre all/);
    expect(texts[16]).toBe("[True, True, True]");
  });

  test("hostile objects are not called; unload removes everything", async () => {
    const cells = await notebook([
      LOAD,
      "class Hostile:\n    def __getattribute__(self, name): raise SystemError('called')\n    def __sizeof__(self): raise SystemError('called')\n    def __len__(self): raise SystemError('called')\n    def __repr__(self): return 'hostile'\n    def __eq__(self, other): raise SystemError('called')\n    __hash__ = None",
      "Hostile()",
      "class L(list):\n    def __len__(self): raise SystemError\nx = L(); x.append(x)\n[x, x]\n(x for x in [1])",
      "%tidemark_leaks",
      "%unload_ext tidemark",
      "%%tidemark\n1",
      LOAD,
      "%%tidemark\n1",
    ]);
    const texts = cells.map(textOf);
    expect(texts[4]).toMatch(/^tidemark: IPython alone keeps/);
    expect(texts[6]).toMatch(/UsageError: Cell magic `%%tidemark` not found/);
    expect(texts[8]).toMatch(/^1\ntidemark In\[9\]/);
  });

  test("without the agent: one clear line, and the cell runs", async () => {
    const cells = await notebook([
      "import tidemark._program as program\nprogram._NATIVE = ('nowhere',)",
      LOAD,
      "%%tidemark\nkept = bytearray(30 << 20)\nlen(kept)",
    ]);
    const text = textOf(present(cells[2]));
    expect(text).toMatch(/^31457280\n/);
    expect(text).toMatch(
      /Only RSS was measured: Tidemark's libtidemark\.so is not installed here.*pip install/,
    );
    expect(text).toMatch(/peak RSS .*\(\+3\d\.\d MiB\)/);
  });
});

test.skipIf(packagesPython === null)("in IPython's terminal the profile is text", async () => {
  const folder = scratch();
  const script = join(folder, "cells.ipy");
  writeFileSync(
    script,
    `${LOAD}\nget_ipython().run_cell("%%tidemark\\nrows = [bytes(1000) for _ in range(20_000)]\\n", store_history=True);\n%tidemark_leaks\nprint("typed:", *(get_ipython().check_complete(cell)[0] for cell in ("%%tidemark", "%%tidemark\\nx = 1", "%%tidemark\\nx = 1\\n\\n")))\n`,
  );
  const outcome = await execute(
    [present(packagesPython), "-B", "-m", "IPython", "--no-banner", "--colors=nocolor", script],
    { cwd: folder, env: { PYTHONPATH: join(repository, "python"), IPYTHONDIR: folder } },
  );
  expect(outcome.status, outcome.stderr).toBe(0);
  expect(outcome.stdout).toMatch(
    /tidemark In\[\d+\]: peak RSS[\s\S]*\+[12]\d\.\d MiB .*rows = \[bytes/,
  );
  expect(outcome.stdout).toMatch(/IPython alone keeps/);
  // A cell that is typed line by line ends with a blank line, as below any cell magic.
  expect(outcome.stdout).toContain("typed: incomplete incomplete complete");
  expect(outcome.stdout).not.toContain("<div");
});
