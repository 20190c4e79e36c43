import { expect, it } from "vitest";
import { SteadyClock } from "./steady_clock.js";

const HOUR = 3_600_000;
const NOW = Date.UTC(2026, 8, 10);

function clockAt(lastMs: number | null = null) {
  const state = { wall: NOW, steady: 5_000, warnings: [] as string[] };
  const clock = new SteadyClock((text) => state.warnings.push(text), lastMs, {
    wallMs: () => state.wall,
    steadyMs: () => state.steady,
  });
  const pass = (ms: number) => {
    state.wall += ms;
    state.steady += ms;
    return [clock.earliestMs() - NOW, clock.latestMs() - NOW];
  };
  return { state, pass };
}

it("follows a clock that runs and is corrected", () => {
  const { state, pass } = clockAt();
  expect(pass(HOUR)).toEqual([HOUR, HOUR]);
  for (let minute = 0; minute < 60; minute++) {
    state.wall += 60_000;
    pass(60_000);
  }
  expect(pass(0)).toEqual([3 * HOUR, 3 * HOUR]);
  expect(state.warnings).toEqual([]);
});

it("does not follow a jump until the clock is back, or a day later", () => {
  const { state, pass } = clockAt();
  state.wall += 1000 * 24 * HOUR;
  expect(pass(HOUR)[0]).toBe(HOUR);
  expect(state.warnings).toEqual([
    expect.stringMatching(/1440000 min ahead of the last known time/),
  ]);
  state.wall -= 1000 * 24 * HOUR;
  expect(pass(HOUR)).toEqual([2 * HOUR, 2 * HOUR]);
  state.wall -= 50 * HOUR;
  expect(pass(HOUR)).toEqual([-47 * HOUR, 3 * HOUR]);
  expect(pass(25 * HOUR)).toEqual([-22 * HOUR, -22 * HOUR]);
  expect(state.warnings).toHaveLength(3);
});

it("a second jump within a day begins a day of its own", () => {
  const { state, pass } = clockAt();
  state.wall += 2 * HOUR;
  pass(23 * HOUR);
  state.wall += 1000 * 24 * HOUR;
  expect(pass(0)[0]).toBe(23 * HOUR);
  expect(pass(2 * HOUR)[0]).toBe(25 * HOUR);
  expect(state.warnings).toHaveLength(2);
  expect(pass(23 * HOUR)[0]).toBe((1000 * 24 + 50) * HOUR);
});

it("doubts a clock that differs by more than a day from the last data", () => {
  const { state, pass } = clockAt(NOW - 40 * 24 * HOUR);
  expect(pass(HOUR)).toEqual([-(40 * 24 - 1) * HOUR, HOUR]);
  expect(state.warnings).toHaveLength(1);
  expect(pass(25 * HOUR)).toEqual([26 * HOUR, 26 * HOUR]);
  expect(clockAt(NOW - 2 * HOUR).pass(HOUR)).toEqual([HOUR, HOUR]);
});
