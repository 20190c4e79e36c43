/** Which ends are crashes, and what their wait status says; messages as `tidemark-guard events` prints them. */
import { describe, expect, test } from "vitest";
import { crashSentence } from "./crash.js";
import { ProcessEvents } from "./process_events.js";

let nowMs = 0;
let lost = 0;
let started: number[] = [];
function events(...lines: string[]): ProcessEvents {
  nowMs = 0;
  lost = 0;
  started = [];
  const taken = new ProcessEvents({
    clock: () => nowMs,
    onUnavailable: () => {},
    onLost: () => (lost += 1),
    onStarted: (pid) => started.push(pid),
  });
  for (const line of lines) {
    const [, wait] = /^wait (\d+)$/.exec(line) ?? [];
    nowMs += Number(wait ?? 0);
    taken.take(line);
  }
  return taken;
}

test.each([
  [11, /crashed with SIGSEGV/],
  [0x80 | 6, /crashed with SIGABRT/],
  [7, /crashed with SIGBUS/],
  [9, /ended by SIGKILL; who sent it is not known/],
  [40, /ended by signal 40/],
  [1 << 8, /exit code 1: as after an exception/],
  [3 << 8, /exit code 3; the cause is not known/],
])("status %i is a crash", (status, sentence) => {
  expect(crashSentence(5, events(`exit 5 ${status}`).endOf(5, 0))).toMatch(sentence);
});

test.each([0, 15, 2, 1])("status %i is none", (status) => {
  expect(crashSentence(5, events(`exit 5 ${status}`).endOf(5, 0))).toBeNull();
});

test("an end that nobody reported is no crash", () => {
  expect(crashSentence(5, null)).toBeNull();
});

describe("events", () => {
  test("an end of an earlier process with the same pid is not this one's", () => {
    expect(events("exit 5 11").endOf(5, 1)).toBeNull();
    expect(events("exit 5 11", "exec 5").endOf(5, 0)).toBeNull();
    expect(events("exit 5 11").endOf(6, 0)).toBeNull();
  });

  test("short-lived Python programs are counted, others are not", () => {
    const taken = events(
      "ready",
      "exec 1",
      "exec 2",
      "exit 1 0",
      "exit 9 0",
      "wait 6000",
      "exit 2 0",
    );
    expect([taken.isReady, started]).toEqual([true, [1, 2]]);
    expect([taken.takeShortLived(), taken.takeShortLived()]).toEqual([1, 0]);
  });

  test("lost events are said once; garbage and many processes change nothing", () => {
    const many = Array.from({ length: 30_000 }, (_, pid) => `exit ${pid} 11`);
    const taken = events(...many, "lost", "lost", "", "nonsense 1 2 3");
    expect(lost).toBe(1);
    expect(taken.endOf(0, 0)).toBeNull();
    expect(taken.endOf(29_999, 0)).toMatchObject({ signal: 11 });
  });
});
