/** The wheel on machines without anything of Tidemark: install, run, attach, report, uninstall. */
import { once } from "node:events";
import { basename } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import type { SummaryJson } from "../../src/model/documents/summary_document.js";
import type { Outcome } from "../run.js";
import { type CommandSettings, Machine, noMachineBecause } from "./machine.js";
import { buildPackages, leakingProgram, type PackageFiles } from "./packages.js";
import { type InstallPlace, places } from "./places.js";

const work = "/var/tmp/work";
const program = `${work}/leak.py`;

let packages: PackageFiles;
beforeAll(async () => {
  packages = await buildPackages();
});

const chosen = places.slice(0, inject("counts").installPlaces);

describe.skipIf(noMachineBecause() !== null).each(chosen)("$name", ({ root, prepare }) => {
  let machine: Machine;
  let place: InstallPlace;
  let before: string[];

  beforeAll(async () => {
    if (root === null) {
      throw new Error("its root file system is unavailable: see the skipped parts of the set-up");
    }
    machine = await Machine.start(root);
    place = await prepare(machine);
    await machine.must(["mkdir", "-m", "777", "-p", work]);
    machine.write(program, leakingProgram);
    before = machine.changes();
  });
  afterAll(() => machine?.stop());

  const settings = (): CommandSettings => ({ ...place.settings, cwd: work });
  const tidemark = (...words: string[]): Promise<Outcome> =>
    machine.run([`${place.bin}/tidemark`, ...words], settings());
  const summary = async (recording: string): Promise<SummaryJson> => {
    const { stdout, stderr } = await tidemark("summary", recording, "--json");
    expect(stderr).toBe("");
    return JSON.parse(stdout) as SummaryJson;
  };

  test("installs from files, without a network", async () => {
    await machine.must([...place.install, `/packages/${basename(packages.wheel)}`]);
    place.lock?.();
  });

  test("starts by each of its names", async () => {
    const version = /^\d+\.\d+\.\d+\n$/;
    for (const command of [
      [`${place.bin}/tidemark`],
      [`${place.bin}/tidemark-profiler`],
      [place.python, "-m", "tidemark"],
      [place.python, "-m", "tidemark_profiler"],
    ]) {
      const outcome = await machine.run([...command, "--version"], settings());
      expect(outcome, command.join(" ")).toMatchObject({ status: 0, stderr: "" });
      expect(outcome.stdout).toMatch(version);
    }
  });

  test("runs a program: its exit code, its output, the line that allocates", async () => {
    const outcome = await tidemark("run", "-o", "run.tidemark", "--", place.python, program);
    expect(outcome.status, outcome.stderr).toBe(3);
    expect(outcome.stdout).toContain("up\n");
    const document = await summary("run.tidemark");
    if (place.preloadOnly) {
      expect(document.limits.join("\n")).toContain(
        "free-threaded Python: only native memory is recorded",
      );
      expect(document.rss.peakBytes).toBeGreaterThan(64 << 20);
    } else {
      expectLeak(document);
    }
  });

  test("attaches to a process of another environment", async ({ skip }) => {
    skip(place.preloadOnly === true, "a build without a GIL cannot be entered");
    const target = machine.spawn([place.otherPython, program, "forever"], settings());
    try {
      await once(target.stdout as NodeJS.ReadableStream, "data");
      const recorded = ["-o", "attach.tidemark", "--for", "3s"];
      const outcome = await tidemark("attach", String(target.pid), ...recorded);
      expect(outcome.status, outcome.stderr).toBe(0);
      expectLeak(await summary("attach.tidemark"));
      expect(target.exitCode).toBeNull();
    } finally {
      target.kill("SIGKILL");
    }
  });

  test("writes the report's page", async () => {
    const outcome = await tidemark("report", "run.tidemark", "-o", "run.html");
    expect(outcome.status, outcome.stderr).toBe(0);
    expect(machine.read(`${work}/run.html`)).toContain('id="tidemark-document"');
  });

  test("names the extra that an export to DuckDB needs, and uses it", async () => {
    const words = ["export", "run.tidemark", "--format", "duckdb", "-o", "run.duckdb"];
    const without = await tidemark(...words);
    expect(without.status).toBe(4);
    expect(without.stderr).toMatch(
      /^tidemark: TM-E012 [^\n]*pip install 'tidemark-profiler\[server\]'[^\n]*\n$/,
    );
    place.unlock?.();
    await machine.must([...place.install, `/packages/${basename(packages.serverWheel)}`]);
    place.lock?.();
    const outcome = await tidemark(...words);
    expect(outcome.status, outcome.stderr).toBe(0);
  });

  test("leaves nothing behind", async () => {
    place.unlock?.();
    await machine.must(place.uninstall);
    const left = machine
      .changes()
      .filter((path) => !before.includes(path) && !path.startsWith(`${work}/`));
    expect(left.filter((path) => !place.leaves?.test(path))).toEqual([]);
  });
});

/** The site of `remember` holds what the program keeps. */
function expectLeak({ sites }: SummaryJson): void {
  const site = sites.find(({ stack }) => stack[0]?.function === "remember");
  expect(site?.liveBytes).toBeGreaterThan(16 << 20);
}
