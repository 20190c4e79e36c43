/** Who gets an agent: bounded in all and by service, in turns, and stable by share. */
import { expect, test } from "vitest";
import { type Candidate, chooseAgents, isInShare } from "./choice.js";

const BOUNDS = { agents: 2, turnMs: 1000 };

function candidate(key: string, given: Partial<Candidate> = {}): Candidate {
  return {
    key,
    service: key,
    share: 1,
    most: Number.POSITIVE_INFINITY,
    isReady: true,
    sinceMs: null,
    leftMs: null,
    turns: 0,
    ...given,
  };
}

test("room is given to those that are ready, up to the number of agents", () => {
  const all = [candidate("a", { isReady: false }), candidate("b"), candidate("c"), candidate("d")];
  expect(chooseAgents(all, BOUNDS, 0)).toEqual({ start: ["b", "c"], stop: [] });
});

test("a turn lasts until it is over and somebody waits", () => {
  const running = [candidate("a", { sinceMs: 0 }), candidate("b", { sinceMs: 500 })];
  expect(chooseAgents(running, BOUNDS, 5000)).toEqual({ start: [], stop: [] });
  const withWaiting = [...running, candidate("c")];
  expect(chooseAgents(withWaiting, BOUNDS, 900)).toEqual({ start: [], stop: [] });
  expect(chooseAgents(withWaiting, BOUNDS, 1000)).toEqual({ start: ["c"], stop: ["a"] });
});

test("over many turns everybody is recorded for the same time", () => {
  const keys = ["a", "b", "c", "d", "e"];
  const state = new Map(keys.map((key) => [key, candidate(key)]));
  const turns = new Map(keys.map((key) => [key, 0]));
  for (let nowMs = 0; nowMs < 100_000; nowMs += 250) {
    const { start, stop } = chooseAgents([...state.values()], BOUNDS, nowMs);
    for (const key of stop) {
      state.set(key, candidate(key, { leftMs: nowMs, turns: turns.get(key) ?? 0 }));
    }
    for (const key of start) {
      state.set(key, candidate(key, { sinceMs: nowMs }));
      turns.set(key, (turns.get(key) ?? 0) + 1);
    }
    expect([...state.values()].filter(({ sinceMs }) => sinceMs !== null)).toHaveLength(2);
  }
  const counts = [...turns.values()];
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(Math.max(...counts) - 1);
});

test("a service has at most its number, and its own programs take turns", () => {
  const ofShop = { service: "shop", most: 1 };
  const waiting = [candidate("a", ofShop), candidate("b", ofShop), candidate("c")];
  expect(chooseAgents(waiting, BOUNDS, 0)).toEqual({ start: ["a", "c"], stop: [] });
  const later = [candidate("a", { ...ofShop, sinceMs: 0 }), candidate("b", ofShop), candidate("c")];
  expect(chooseAgents(later, BOUNDS, 500)).toEqual({ start: ["c"], stop: [] });
  expect(chooseAgents(later, BOUNDS, 1000)).toEqual({ start: ["b", "c"], stop: ["a"] });
});

test("a share is met over many programs, and a program's answer never changes", () => {
  const keys = Array.from({ length: 4000 }, (_, n) => `${n}:${n * 7}:/usr/bin/python3`);
  const inside = keys.filter((key) => isInShare({ key, share: 0.1 }));
  expect(inside.length / keys.length).toBeCloseTo(0.1, 1);
  expect(inside.every((key) => isInShare({ key, share: 0.3 }))).toBe(true);
  expect(keys.some((key) => isInShare({ key, share: 0 }))).toBe(false);
});
