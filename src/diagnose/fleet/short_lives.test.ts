/** A service whose processes end within a minute: what the diagnoses of several observed is in its summary. */
import { expect, test } from "vitest";
import type { FleetProcess } from "./curves/fleet_evidence.js";
import { diagnoseService } from "./diagnose_fleet.js";
import { DAY, END, MIB, processOf } from "./fleet_evidence.fixture.js";

const SECOND = 1_000;

interface Brief {
  readonly lifeMs?: number;
  readonly version?: string;
  /** What its diagnosis says about growth. */
  readonly observed?: string;
}

/** One life after another, the last of which still runs. */
function lives(all: readonly Brief[]): FleetProcess[] {
  let startedMs = END - all.reduce((sum, { lifeMs = 20 * SECOND }) => sum + lifeMs, 0);
  return all.map(({ lifeMs = 20 * SECOND, version = "7", ...observed }, at) => {
    const process = processOf({ instance: 0, version, fromDaysAgo: 1, mib: () => 0 });
    const times = [startedMs + 5 * SECOND];
    const own = { process: `${at}`, startedMs, rss: { times, values: [40 * MIB] } };
    startedMs += lifeMs;
    return {
      ...{ ...process, ...own, ...observed, kind: "insufficient-evidence" },
      endedMs: at === all.length - 1 ? null : startedMs,
    };
  });
}

function summary(all: readonly Brief[]): string {
  const window = { startMs: END - 14 * DAY, endMs: END };
  return diagnoseService({ service: "shop", window, processes: lives(all) }, 7).verdict.summary;
}

const grows = { observed: "remember (state.py:41) keeps what it allocates." };

test("if memory grew in two lives, the summary says how long they are and what the newest shows", () => {
  const newest = {
    observed:
      "There is not enough evidence for a verdict. remember (state.py:42) keeps what it allocates.",
  };
  expect(summary([{}, grows, newest, {}, {}])).toBe(
    "Version 7 of shop has not run long enough for the fleet's verdict. Its processes end after about 20 s, too soon for the fleet's verdict; the agent saw memory grow in 2 of the 4 that ended in the last hour. The newest of these: remember (state.py:42) keeps what it allocates.",
  );
});

test("one life, an earlier version, and a process that lives longer change nothing", () => {
  const plain = "Version 7 of shop has not run long enough for the fleet's verdict.";
  expect(summary([{}, grows, {}, {}])).toBe(plain);
  const before = { ...grows, version: "6" };
  expect(summary([before, before, before, {}, {}])).toBe(plain);
  expect(summary([grows, grows, grows, { lifeMs: 90 * SECOND }])).toBe(plain);
});
