/** A service whose processes end within a minute: the line that several of their diagnoses name is in its summary. */
import { expect, test } from "vitest";
import type { VerdictKind } from "../../model/documents/diagnosis_document.js";
import { diagnoseService } from "./diagnose_fleet.js";
import { DAY, END, MIB, processOf } from "./fleet_evidence.fixture.js";
import type { FleetProcess } from "./fleet_evidence.js";

const SECOND = 1_000;

interface Brief {
  readonly lifeMs?: number;
  readonly version?: string;
  readonly kind?: VerdictKind;
  /** The function that kept what it allocated, with its holder; null: the diagnosis names none. */
  readonly name: string | null;
}

/** One life after another, the last of which still runs. */
function lives(all: readonly Brief[]): FleetProcess[] {
  let startedMs = END - all.reduce((sum, { lifeMs = 20 * SECOND }) => sum + lifeMs, 0);
  return all.map(({ lifeMs = 20 * SECOND, version = "7", kind, name }, at) => {
    const life = { instance: 0, version, fromDaysAgo: 1, mib: () => 0 };
    const times = [startedMs + 5 * SECOND];
    const holders = processOf({ ...life, bounds: name === null ? {} : { [name]: 0 } }).holders;
    const process = { ...processOf(life), process: `${at}`, startedMs, holders };
    startedMs += lifeMs;
    return {
      ...process,
      endedMs: at === all.length - 1 ? null : startedMs,
      rss: { times, values: [40 * MIB] },
      kind: kind ?? "insufficient-evidence",
    };
  });
}

function summary(all: readonly Brief[]): string {
  const window = { startMs: END - 14 * DAY, endMs: END };
  return diagnoseService({ service: "shop", window, processes: lives(all) }, 7).verdict.summary;
}

const keeps = { name: "remember" };
const unknown = { name: null };

test("a line that was seen in two lives is named, with its holder and the reason for the doubt", () => {
  expect(summary([unknown, keeps, keeps, unknown, unknown])).toBe(
    "Version 7 of shop has not run long enough for the fleet's verdict. Its processes end after about 20 s, too soon for the fleet's verdict; in 2 of 4 of them, remember (state.py:41) kept what it allocated, held by module app.state → remember. In such a time a starting program, a filling cache and a leak look the same.",
  );
});

test("one life, different lines, calm lives, an earlier version and a process that lives longer name none", () => {
  const plain = "Version 7 of shop has not run long enough for the fleet's verdict.";
  expect(summary([unknown, keeps, unknown, unknown])).toBe(plain);
  expect(summary([keeps, { name: "other" }, unknown])).toBe(plain);
  const calm = { ...keeps, kind: "cache-plateau" } as const;
  expect(summary([calm, calm, calm, unknown])).toBe(plain);
  const before = { ...keeps, version: "6" };
  expect(summary([before, before, before, unknown, unknown])).toBe(plain);
  expect(summary([keeps, keeps, keeps, { ...unknown, lifeMs: 90 * SECOND }])).toBe(plain);
});
