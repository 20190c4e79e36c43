/** Typical programs with widely used packages. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { coarsestPeriod } from "../../src/inspect/recorded/summary.js";
import { itemAt } from "../../src/model/base/columns.js";
import { present } from "../../src/model/base/present.js";
import { compare, expectSame } from "../behaviour.js";
import { environment } from "../environment.js";
import {
  execute,
  plainEnvironment,
  programs,
  type RecordedOutcome,
  type RunSettings,
  readText,
  record,
  removeScratch,
  until,
} from "../run.js";
import {
  expectEstimate,
  expectFigure,
  liveOf,
  placeName,
  placeOf,
  topPlaces,
  truthIn,
} from "../truth.js";

const python = present(environment.packagesPython);
afterAll(removeScratch);

/** Runs a program that reports its true figures, and checks each of them. */
async function recordKnown(
  command: readonly string[],
  settings: RunSettings = {},
): Promise<RecordedOutcome> {
  const outcome = await record(command, settings);
  expect(outcome.status, outcome.stderr).toBe(0);
  const recording = outcome.open();
  const profile = recording.profileAt("end");
  const coarsest = coarsestPeriod(recording);
  for (const known of truthIn(outcome.stdout).sites) {
    expectFigure(profile, known, "live", known.liveBytes, 0.02, coarsest);
    if (known.allocatedBytes !== null) {
      expectFigure(profile, known, "allocated", known.allocatedBytes, 0.02, coarsest);
    }
  }
  return outcome;
}

describe.skipIf(environment.packagesPython === null)("with PyPI packages", () => {
  test("NumPy and pandas: arrays and a column, at the lines that created them", async () => {
    const outcome = await recordKnown([python, join(programs, "numeric.py")]);
    const { limits } = await outcome.summary();
    // Whether the recorder's budget has room for a lookup depends on the machine.
    const ofProfile = limits.filter((limit) => !/^(?:The|No) holders .* budget/.test(limit));
    expect(ofProfile, ofProfile.join("\n")).toEqual([]);
  });

  test("NumPy with native frames: the Python line and the library are both shown", async () => {
    const outcome = await recordKnown([python, join(programs, "numeric.py")], {
      options: ["--native"],
    });
    const summary = await outcome.summary();
    const frames = summary.sites.flatMap(({ stack }) => stack);
    const native = frames.filter(({ kind }) => kind === "native");
    expect(native.some(({ file }) => /_multiarray_umath/.test(file))).toBe(true);
    // Most native frames have symbol names instead of addresses.
    expect(native.filter(({ function: name }) => /[A-Za-z]/.test(name)).length).toBeGreaterThan(
      native.length / 2,
    );
  });

  test("threads: each one's share is separate", async () => {
    const outcome = await recordKnown([python, join(programs, "threads.py")]);
    const profile = outcome.open().profileAt("end");
    const { sites, threads } = profile;
    const ofEach = threads.flatMap(({ isMain, tid }, thread) =>
      isMain || tid === 0 ? [] : [liveOf(profile, (site) => sites.thread[site] === thread)],
    );
    const largest = ofEach.sort((one, other) => other.bytes - one.bytes).slice(0, 4);
    // That many blocks of 4033 bytes, and the list that holds them.
    [400, 300, 200, 100].forEach((share, rank) => {
      expectEstimate(largest[rank], share * 100 * (4033 + 8), 0.05);
    });
  });

  test.each([[], ["--native"]])(
    "greenlets: swapped stacks stay separate %j",
    async (...options) => {
      await recordKnown([python, join(programs, "greenlets.py")], { options });
    },
  );

  test.each([[], ["--native"]])("gevent: patched sockets and a pool %j", async (...options) => {
    await recordKnown([python, join(programs, "gevent_program.py")], { options });
  });

  test("pytest, as a console script and by -m: its report and exit code, and the fixture that keeps", async () => {
    const suite = join(programs, "suite");
    for (const start of [[join(dirname(python), "pytest")], [python, "-m", "pytest"]]) {
      const command = [...start, "-q", "-p", "no:cacheprovider", suite];
      const plain = await execute(command);
      const recorded = await record(command);
      expect(plain.status).toBe(1);
      expectSame(plain, recorded, withoutTimes);
      const top = topPlaces(recorded.open().profileAt("peak"), "peak");
      const line =
        1 +
        readFileSync(join(suite, "test_leaky.py"), "utf8")
          .split("\n")
          .findIndex((text) => text.includes("# known: fixture"));
      expect(top[0]).toBe(placeName("load", "test_leaky.py", line));
    }
  });

  test("python -m: a package as a program, its arguments and its exit code", async () => {
    const { recorded } = await compare([python, "-m", "package_with_main", "a b", "--json"], {
      cwd: programs,
    });
    expect(recorded.status).toBe(7);
    expect(recorded.stdout).toBe("a b --json\n");
    expect(topPlaces(recorded.open().profileAt("end"), "live")[0]).toBe("fill store.py:7");
  });

  test("FastAPI on uvicorn under load from another process, ended by SIGINT", async () => {
    const outcome = await record([python, join(programs, "service.py")], {
      started: async (child, files) => {
        await loadService(files.stderr, 1000, 1);
        // To the whole group, like Ctrl-C in a terminal.
        process.kill(-present(child.pid), "SIGINT");
      },
    });
    expect(outcome.stderr).toMatch(/Application shutdown complete/);
    const known = itemAt(truthIn(outcome.stdout).sites, 0);
    const recording = outcome.open();
    const coarsest = coarsestPeriod(recording);
    expectFigure(recording.profileAt("peak"), known, "peak", known.liveBytes, 0.04, coarsest);
    expect(topPlaces(recording.profileAt("peak"), "peak").slice(0, 3)).toContain(placeOf(known));
  });

  test("uvicorn's own console script, in two worker processes, ended by SIGTERM to Tidemark alone", async () => {
    const uvicorn = join(dirname(python), "uvicorn");
    const outcome = await record(
      [uvicorn, "service:application", "--port", "0", "--workers", "2"],
      {
        cwd: programs,
        started: async (child, files) => {
          await loadService(files.stderr, 1600, 2);
          process.kill(present(child.pid), "SIGTERM");
        },
      },
    );
    expect(outcome.stderr).toMatch(/Stopping parent process/);
    const summary = await outcome.summary();
    expect(summary.processes.filter(({ profiled }) => profiled).length).toBeGreaterThanOrEqual(3);
    const orders = summary.sites.filter(({ stack }) => stack[0]?.function === "remember");
    const allocated = orders.reduce((sum, site) => sum + site.allocatedBytes, 0);
    expect(Math.abs(allocated - 1600 * 100_033) / (1600 * 100_033)).toBeLessThan(0.75);
  });
});

/** Waits until uvicorn prints its port, then sends the orders from a separate process. */
async function loadService(log: string, requests: number, workers: number): Promise<void> {
  const port = () => /running on http:\/\/127\.0\.0\.1:(\d+)/.exec(readText(log))?.[1];
  await until(() => port() !== undefined);
  // uvicorn's parent prints the port before its workers listen.
  await until(() => readText(log).split("Application startup complete").length > workers);
  const load = spawn(python, [join(programs, "load.py"), present(port()), String(requests)], {
    cwd: programs,
    env: plainEnvironment(programs),
    stdio: "ignore",
  });
  const [status] = await once(load, "exit");
  expect(status).toBe(0);
}

function withoutTimes(text: string): string {
  return text.replace(/in \d+\.\d+s/g, "in T");
}
