/** Ends whose events arrive late, or never. */
import { expect, test } from "vitest";
import type { WantedCapture } from "../captures/captures.js";
import type { Program } from "../policy/programs.js";
import { LastMoments } from "./last_moments.js";
import { ProcessEvents } from "./process_events.js";

const PROGRAM = {
  root: { pid: 5, key: "5" },
  processes: [{ pid: 5 }, { pid: 6 }],
} as unknown as Program;

function moments(...lines: string[]) {
  const captured: WantedCapture[] = [];
  let nowMs = 0;
  const clock = () => nowMs;
  const events = new ProcessEvents({ clock, onUnavailable: () => {}, onLost: () => {} });
  for (const line of lines) {
    events.take(line);
  }
  const kept = new LastMoments({ events, clock, capture: (wanted) => captured.push(wanted) });
  let others = 0;
  return {
    events,
    kept,
    end: () => kept.ended(PROGRAM, "recording", [], () => (others += 1)),
    poll(program = PROGRAM) {
      nowMs += 3_000;
      kept.poll([{ program, recording: "recording" }], nowMs);
    },
    outcome: () => [captured.map(({ reason }) => reason), others],
  };
}

test("an event that arrives after the end was noticed still names the crash", () => {
  const { events, poll, end, outcome } = moments("ready");
  poll();
  end();
  expect(outcome()).toEqual([[], 0]);
  events.take("exit 5 11");
  poll();
  expect(outcome()).toEqual([[expect.stringContaining("crashed with SIGSEGV")], 0]);
  poll();
  expect(outcome()[0]).toHaveLength(1);
});

test("the event of a worker that crashed arrives after it was missed", () => {
  const { events, poll, outcome } = moments("ready");
  poll();
  const master = { ...PROGRAM, processes: PROGRAM.processes.slice(0, 1) };
  poll(master);
  events.take("exit 6 6");
  poll(master);
  expect(outcome()).toEqual([[expect.stringMatching(/^A worker crashed.*SIGABRT/)], 0]);
});

test("SIGTERM, or an event that never arrives, is no crash", () => {
  const { events, poll, end, outcome } = moments("ready");
  end();
  events.take("exit 5 15");
  poll();
  expect(outcome()).toEqual([[], 1]);
  const lost = moments("ready");
  lost.poll();
  lost.end();
  lost.poll();
  expect(lost.outcome()).toEqual([[], 1]);
  const closed = moments("ready");
  closed.end();
  closed.kept.close();
  expect(closed.outcome()).toEqual([[], 1]);
});

test("without events, an end is judged at once, and is no crash", () => {
  const { end, outcome } = moments();
  end();
  expect(outcome()).toEqual([[], 1]);
});
