/** Which programs get the agent before the warm-up is over, and how often. */
import { expect, test } from "vitest";
import type { ScannedProcess } from "../../linux/index.js";
import type { Millis } from "../../model/base/units.js";
import { ShortLives } from "./short_lives.js";

const SECOND: Millis = 1_000;
const MINUTE: Millis = 60_000;
const BOUNDS = { warmUpMs: MINUTE, turnMs: 10 * MINUTE };

/** A host whose programs start and end as a test says; a scan each second. */
class Host {
  #nowMs: Millis = 0;
  #pid = 100;
  readonly living = new Set<ScannedProcess>();
  readonly lives = new ShortLives({ exitOf: () => null, wallClock: () => this.#nowMs });

  start(service: string): ScannedProcess {
    const pid = this.#pid++;
    const identity = { service, version: "", env: "", namespace: "", workload: "", container: "" };
    const process = { key: `${pid}`, pid, uid: 0, identity, startedMs: this.#nowMs };
    this.living.add(process as unknown as ScannedProcess);
    return process as unknown as ScannedProcess;
  }

  end(process: ScannedProcess): void {
    this.living.delete(process);
    this.#observe();
  }

  /** Gives the agent to each program that may have it. @returns the ages at which they got it. */
  pass(ms: Millis, has: Map<string, Millis> = new Map()): Map<string, Millis> {
    for (const untilMs = this.#nowMs + ms; this.#nowMs < untilMs; this.#nowMs += SECOND) {
      this.#observe();
      for (const root of this.living) {
        if (!has.has(root.key) && this.lives.enter(root, BOUNDS, this.#nowMs) !== null) {
          has.set(root.key, this.#nowMs - root.startedMs);
        }
      }
    }
    return has;
  }

  /** One life after another. @returns the age at which each got the agent; null: it did not. */
  restarting(service: string, lifeMs: Millis, times: number): (Millis | null)[] {
    return Array.from({ length: times }, () => {
      const process = this.start(service);
      const age = this.pass(lifeMs).get(process.key) ?? null;
      this.end(process);
      return age;
    });
  }

  #observe(): void {
    this.lives.observe(
      [...this.living].map((root) => ({ root })),
      BOUNDS.warmUpMs,
      this.#nowMs,
    );
  }
}

test("after three lives that ended before the warm-up, the next three get the agent early, then one in each turn", () => {
  const ages = new Host().restarting("worker", 20 * SECOND, 65);
  const withAgent = ages.flatMap((age, life) => (age === null ? [] : [life]));
  expect(withAgent.slice(0, 4)).toEqual([3, 4, 5, 35]);
  expect(withAgent).toHaveLength(4);
  expect(new Set(withAgent.map((life) => ages[life]))).toEqual(new Set([5 * SECOND]));
});

test("the age is a sixth of the typical life", () => {
  expect(new Host().restarting("worker", 48 * SECOND, 4)).toEqual([null, null, null, 8 * SECOND]);
});

test("a program whose lives are too short to record, or as long as the warm-up, changes nothing", () => {
  const host = new Host();
  expect(host.restarting("tool", 6 * SECOND, 50)).toEqual(Array(50).fill(null));
  expect(host.restarting("service", 2 * MINUTE, 6)).toEqual(Array(6).fill(null));
  // One that lives longer than the warm-up gets the agent anyway.
  host.restarting("mixed", 20 * SECOND, 3);
  host.restarting("mixed", 2 * MINUTE, 1);
  expect(host.restarting("mixed", 20 * SECOND, 2)).toEqual([null, null]);
});

test("of many that run at the same time, one has the agent at a time", () => {
  const host = new Host();
  host.restarting("job", 20 * SECOND, 3);
  const all = Array.from({ length: 8 }, () => host.start("job"));
  expect(host.pass(20 * SECOND).size).toBe(1);
  for (const one of all) {
    host.end(one);
  }
});

test("a host with many short programs of different names gives one a minute the agent", () => {
  const host = new Host();
  let withAgent = 0;
  for (let round = 0; round < 30; round++) {
    const all = Array.from({ length: 40 }, (_, name) => host.start(`tool-${name}`));
    withAgent += host.pass(20 * SECOND).size;
    for (const one of all) {
      host.end(one);
    }
  }
  // Ten minutes, and a credit of six at first.
  expect(withAgent).toBeGreaterThan(6);
  expect(withAgent).toBeLessThanOrEqual(16);
});

test("lives are forgotten an hour after the last one", () => {
  const host = new Host();
  host.restarting("nightly", 20 * SECOND, 3);
  host.pass(61 * MINUTE);
  expect(host.restarting("nightly", 20 * SECOND, 1)).toEqual([null]);
});

test("a line counts when it was seen in two lives, once", () => {
  const host = new Host();
  host.restarting("worker", 20 * SECOND, 3);
  const root = host.start("worker");
  const of = (line: string) => host.lives.diagnosed(root, line);
  expect([of("f a.py:1"), of(""), of("g a.py:2")]).toEqual([null, null, null]);
  expect(of("f a.py:1")).toEqual({ lives: 2, of: 4 });
  expect([of("f a.py:1"), of("")]).toEqual([null, null]);
  expect(host.lives.diagnosed(host.start("other"), "f a.py:1")).toBeNull();
});
