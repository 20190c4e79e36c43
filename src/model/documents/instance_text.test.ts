import { expect, test } from "vitest";
import {
  affectedText,
  instanceStateText,
  restCountsText,
  serviceStateText,
  serviceVerdictText,
} from "./instance_text.js";

const MINUTE = 60_000;
const NOW = Date.UTC(2026, 10, 20, 12);
const lastSeenMs = NOW - 12 * MINUTE;

test("the state of an instance is in the same words wherever it is shown", () => {
  expect(instanceStateText({ state: "running", lastSeenMs }, NOW)).toBe("runs");
  expect(instanceStateText({ state: "silent", lastSeenMs }, NOW)).toBe("silent for 12 min");
  const ended = { state: "ended", lastSeenMs, endedMs: NOW - 180 * MINUTE } as const;
  expect(instanceStateText(ended, NOW)).toBe("ended 3.0 h ago");
  const continued = { ...ended, state: "continued", continuedAs: "3f2a81c4d5e6" } as const;
  expect(instanceStateText(continued, NOW)).toBe("continued as 3f2a81c4");
});

test("a service of which nothing runs says since when", () => {
  expect(serviceStateText({ state: "running", lastSeenMs }, NOW)).toBe("");
  expect(serviceStateText({ state: "silent", lastSeenMs }, NOW)).toBe("silent for 12 min");
  expect(serviceStateText({ state: "ended", lastSeenMs }, NOW)).toBe("ended 12 min ago");
  expect(restCountsText({ endedInstances: 3, silentInstances: 0 })).toBe("3 ended");
  expect(restCountsText({ endedInstances: 3, silentInstances: 1 })).toBe("3 ended, 1 silent");
  expect(affectedText({ affectedInstances: 4, runningInstances: 5 })).toBe("4 of 5");
  expect(affectedText({ affectedInstances: 0, runningInstances: 0 })).toBe("none runs");
});

test("the verdict of a service names the instance, unless there is only one", () => {
  const verdict = { kind: "python-leak", confidence: 1, summary: "It leaks.", instances: 2 };
  expect(serviceVerdictText({ ...verdict, stream: "3f2a81c4d5e6" }, 2)).toBe(
    "The fastest growing instance, 3f2a81c4: It leaks.",
  );
  expect(serviceVerdictText({ ...verdict, stream: "3f2a81c4d5e6" }, 1)).toBe("It leaks.");
  expect(serviceVerdictText(verdict, 2)).toBe("It leaks.");
});
