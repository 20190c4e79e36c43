/** Ledgers in a recording: taken automatically, shown in the summary and the report. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test } from "vitest";
import { present } from "../src/model/base/present.js";
import { LEDGER_METRICS, ledgerMetric } from "../src/model/profile/series.js";
import { openRecording } from "../src/record/index.js";
import { launchBrowser } from "./browser.js";
import { anyInterpreter, environment } from "./environment.js";
import { execute, removeScratch, scratch, tidemark } from "./run.js";

/** 48 MiB of blocks, some objects, and a mapping that is never written to; runs until it is told to end. */
const PROGRAM = `import mmap, sys
space = mmap.mmap(-1, 256 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
blocks = [bytearray(b"x") * (4 << 20) for _ in range(12)]
objects = [str(i) for i in range(100_000)]
sys.stdin.read()
`;
const MIB = 2 ** 20;

let program: ChildProcess | null = null;
afterAll(() => {
  program?.kill();
  removeScratch();
});

test("the parts of a recorded ledger are those of RSS at that time", async () => {
  const folder = scratch();
  const recording = join(folder, "app.tidemark");
  program = spawn(
    tidemark,
    ["run", "--quiet", "-o", recording, "--", anyInterpreter().path, "-c", PROGRAM],
    { cwd: folder, stdio: ["pipe", "inherit", "inherit"] },
  );
  const ended = once(program, "exit");
  while (!hasLedger(recording)) {
    expect(program.exitCode).toBeNull();
    await setTimeout(200);
  }
  program.stdin?.end();
  await ended;

  const { series, limits } = openRecording(recording);
  expect(limits.filter((limit) => /ledger/.test(limit))).toEqual([]);
  const [root] = series;
  if (root === undefined) {
    throw new Error("no series");
  }
  const column = root.values.get(ledgerMetric("malloc.used")) ?? new Float64Array();
  const row = column.findIndex((value) => !Number.isNaN(value));
  const of = (metric: (typeof LEDGER_METRICS)[number]) => root.values.get(metric)?.[row] ?? 0;
  const whole = LEDGER_METRICS.reduce((sum, metric) => sum + of(metric), 0);
  // The poll at the same time; the kernel's quick count lags by some pages per processor.
  expect(Math.abs(whole - (root.values.get("rssBytes")?.[row] ?? 0))).toBeLessThan(4 * MIB);
  expect(of("ledger.malloc.used")).toBeGreaterThan(48 * MIB);
  expect(of("ledger.python.used")).toBeGreaterThan(100_000 * 48);
  // The agent's own segment is also mapped.
  expect(of("ledger.tidemark")).toBeGreaterThan(0);

  const summary = await execute([tidemark, "summary", recording, "--json"]);
  const { ledger } = JSON.parse(summary.stdout) as {
    ledger: { parts: { part: string; bytes: number }[] };
  };
  const malloc = ledger.parts.find(({ part }) => part === "malloc.used");
  expect(malloc?.bytes).toBeGreaterThan(48 * MIB);
  const text = await execute([tidemark, "summary", recording]);
  expect(text.stdout).toMatch(/^By part .*malloc\.used/m);
  expect(text.stdout).toMatch(
    /^ +2\d\d MiB of it is mapped, of which at most [\d.]+ [KM]iB are resident/m,
  );

  const page = join(folder, "app.html");
  expect((await execute([tidemark, "report", recording, "-o", page])).status).toBe(0);
  const browser = await launchBrowser();
  try {
    const opened = await browser.newPage();
    await opened.goto(pathToFileURL(page).href);
    const panel = opened.getByRole("region", { name: "Ledger" });
    await expect.poll(() => panel.innerText()).toMatch(/RSS by part.*python\.used.*malloc\.used/s);
  } finally {
    await browser.close();
  }
});

test.skipIf(environment.packagesPython === null)(
  "memory of an allocator built into a library is reported as belonging to no site",
  async () => {
    const recording = join(scratch(), "arrow.tidemark");
    const arrow = "import pyarrow, sys\nkept = pyarrow.array(range(8_000_000))\nsys.stdin.read()\n";
    program = spawn(
      tidemark,
      [
        ...["run", "--quiet", "-o", recording, "--"],
        ...[present(environment.packagesPython), "-c", arrow],
      ],
      { stdio: ["pipe", "inherit", "inherit"] },
    );
    const ended = once(program, "exit");
    const said = () => (hasLedger(recording) ? openRecording(recording).limits : []);
    while (!said().some((limit) => /malloc in libarrow\.so/.test(limit))) {
      expect(program.exitCode).toBeNull();
      await setTimeout(200);
    }
    program.stdin?.end();
    await ended;
  },
);

function hasLedger(recording: string): boolean {
  if (!existsSync(recording)) {
    return false;
  }
  try {
    const { series } = openRecording(recording);
    return series.some(({ values }) => values.has(ledgerMetric("malloc.used")));
  } catch (error) {
    // Created, but not started yet.
    expect((error as Error).message).toMatch(/^TM-E005 .*(?:is empty|ends)/);
    return false;
  }
}
