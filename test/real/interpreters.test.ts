/** Runs a program that knows what it allocated on every CPython of this machine and the chroot. */

import { existsSync, mkdirSync, rmdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { coarsestPeriod } from "../../src/inspect/recorded/summary.js";
import type { SummaryJson } from "../../src/model/documents/summary_document.js";
import type { Profile } from "../../src/model/profile/profile.js";
import type { Recording } from "../../src/recording/types.js";
import { environment, type Interpreter } from "../environment.js";
import { programs, type RecordedOutcome, record, removeScratch, repository } from "../run.js";
import { domainBytes, expectFigure, placeOf, type Truth, topPlaces, truthIn } from "../truth.js";

afterAll(removeScratch);

describe.each(
  environment.interpreters.map((interpreter) => [nameOf(interpreter), interpreter] as const),
)("%s", (_name, interpreter) => {
  let outcome: RecordedOutcome;
  let truth: Truth;
  let recording: Recording;
  let end: Profile;
  let summary: SummaryJson;

  beforeAll(async () => {
    outcome = await record(commandFor(interpreter, "known_sites.py"));
    expect(outcome.status, outcome.stderr).toBe(0);
    truth = truthIn(outcome.stdout);
    recording = outcome.open();
    end = recording.profileAt("end");
    summary = await outcome.summary();
  });

  test.runIf(!interpreter.freeThreaded)(
    "each known line has its bytes, within the stated error",
    () => {
      const coarsest = coarsestPeriod(recording);
      for (const known of truth.sites) {
        expectFigure(end, known, "live", known.liveBytes, 0.02, coarsest);
        if (known.allocatedBytes !== null) {
          expectFigure(end, known, "allocated", known.allocatedBytes, 0.02, coarsest);
        }
      }
    },
  );

  test.runIf(!interpreter.freeThreaded)(
    "the largest known lines are the first of the table",
    () => {
      const largest = [...truth.sites].sort((a, b) => b.liveBytes - a.liveBytes).slice(0, 3);
      const top = topPlaces(end, "live").slice(0, 4);
      expect(top).toEqual(expect.arrayContaining(largest.slice(0, 2).map(placeOf)));
    },
  );

  test("Python, native and mapped memory are distinguished", () => {
    expect(domainBytes(end, "native")).toBeGreaterThan(10e6);
    expect(domainBytes(end, "mapped")).toBeGreaterThan(32 * 2 ** 20 * 0.8);
    const python = domainBytes(end, "python");
    // Without a GIL, objects come from the interpreter's own allocator, whose mappings are recorded.
    if (interpreter.freeThreaded) {
      expect(python).toBe(0);
    } else {
      expect(python).toBeGreaterThan(100e6);
    }
  });

  test("the summary names the interpreter, and its peak is the kernel's", () => {
    const process = summary.processes.find(({ pid }) => pid === truth.pid);
    expect(process).toMatchObject({ python: interpreter.version, profiled: true });
    expect(process?.peakRssBytes).toBeGreaterThan(0);
    expect(summary.rss.peakBytes).toBeGreaterThanOrEqual(truth.maxRssBytes);
    // The agent and the interpreter's exit add to the figure that the program itself has read.
    expect(summary.rss.peakBytes).toBeLessThan(truth.maxRssBytes * 1.05 + 20 * 2 ** 20);
    expect(recording.end).toMatchObject({ exitCode: 0, signal: null });
    expect(recording.complete).toBe(true);
    expect(recording.damage).toBeNull();
  });

  test("no sample was lost and nothing is reported as missing", () => {
    expect(summary.agent.samples).toBeGreaterThan(100);
    expect(summary.agent.lost).toBe(0);
    const limits = summary.limits.join("\n");
    if (interpreter.freeThreaded) {
      expect(limits).toMatch(/free-threaded/);
    }
    // Some of the shell processes around a chroot allocate too little to be sampled at all.
    else if (interpreter.chroot) {
      expect(limits).not.toMatch(/python|process \d+/);
    } else {
      expect(limits).toBe("");
    }
  });
});

function nameOf({ version, path, chroot, freeThreaded }: Interpreter): string {
  return `Python ${version}${freeThreaded ? " free-threaded" : ""} (${chroot ? "chroot, " : ""}${path})`;
}

/** Starts it as a user would in a chroot: with /proc mounted, and Tidemark's library at the same path. */
function commandFor({ path, chroot }: Interpreter, program: string): string[] {
  if (chroot === undefined) {
    return [path, join(programs, program)];
  }
  const places = [join(repository, "dist"), programs].map(
    (place) => [place, join(chroot, place)] as const,
  );
  for (const [, inside] of places) {
    if (existsSync(inside)) {
      continue;
    }
    mkdirSync(inside, { recursive: true });
    afterAll(() => removeEmpty(inside, chroot));
  }
  const binds = places.map(([outside, inside]) => `mount --bind '${outside}' '${inside}'`);
  const script = [
    "mount --make-rprivate /",
    `mount --rbind /proc '${chroot}/proc'`,
    ...binds,
    `exec chroot '${chroot}' "$@"`,
  ];
  return [
    "unshare",
    "--mount",
    "sh",
    "-ec",
    script.join("\n"),
    "sh",
    path,
    join(programs, program),
  ];
}

function removeEmpty(folder: string, stop: string): void {
  for (let place = folder; place !== stop; place = dirname(place)) {
    try {
      rmdirSync(place);
    } catch {
      return; // it contains other files
    }
  }
}
