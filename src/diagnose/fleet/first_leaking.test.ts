import { expect, test } from "vitest";
import { isSlower } from "./first_leaking.js";
import { HOUR, type Life, MIB, processOf, three } from "./fleet_evidence.fixture.js";
import { seenLives } from "./lines/seen_lines.js";

const line = { function: "remember", file: "/srv/app/state.py", line: 41, kind: "python" } as const;

/** A version of six hours, in which RSS shows nothing: its growth is unknown. */
const versionOf = (lines: Life["lines"]) => {
  const lives = three({ version: "1.0", fromDaysAgo: 0.25, mib: () => 0, ...(lines && { lines }) });
  const processes = lives.map((life) => {
    const process = processOf(life);
    return { process, rss: process.rss, work: null };
  });
  const about = { version: "1.0", startedMs: 0, processes, odd: [], growth: null };
  return { ...about, seen: seenLives(processes) };
};

test("what the agent saw of the line that leaks decides whether an earlier version grew more slowly", () => {
  const leak = { rate: (2 * MIB) / HOUR, shownBy: line };
  expect(isSlower(versionOf({ imports: () => 90 }), leak)).toBe(true);
  expect(isSlower(versionOf({ remember: (hours) => 10 + 0.2 * hours }), leak)).toBe(true);
  expect(isSlower(versionOf({ remember: (hours) => 2 * hours }), leak)).toBe(false);
  // No agent ran, or RSS shows the leak.
  expect(isSlower(versionOf(undefined), leak)).toBe(false);
  expect(isSlower(versionOf({ imports: () => 90 }), { rate: leak.rate })).toBe(false);
});
