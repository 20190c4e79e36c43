import { expect, test } from "vitest";
import { root } from "../setup.mjs";
import { countOfAgent } from "./agent.mjs";
import { countOfUnittest } from "./python.mjs";
import { countOfVitest, slowestFiles, slowestTests } from "./vitest.mjs";

test("the agent's closing line, with and without skips", () => {
  expect(countOfAgent(["12 passed, 0 failed"], 0)).toMatchObject({
    passed: 12,
    failed: 0,
    skipped: 0,
  });
  expect(
    countOfAgent(["ok - valgrind # SKIP not installed", "3 passed, 1 failed, 1 skipped"], 2),
  ).toMatchObject({ passed: 3, failed: 1, skipped: 1, reasons: ["valgrind: not installed"] });
});

test("a failure is reported with its own message", () => {
  const lines = ["ok - one", "not ok - two", "ok - three", "# two.c:7: x", "2 passed, 1 failed"];
  expect(countOfAgent(lines, 2)?.failures).toEqual(["not ok - two", "# two.c:7: x"]);
  const unittest = ["FAIL: test_x", "AssertionError", "Ran 2 tests in 0.1s", "FAILED (failures=1)"];
  expect(countOfUnittest(unittest, 1)?.failures).toEqual(unittest.slice(0, 3));
  const failed = { ...file("failed", "failed", "passed"), name: `${root}/test/some.test.ts` };
  Object.assign(failed.assertionResults[0] ?? {}, { failureMessages: ["one\ntwo"] });
  const broken = {
    ...file("failed"),
    name: `${root}/test/broken.test.ts`,
    message: "no such file",
  };
  expect(countOfVitest({ testResults: [failed, broken] }, 1)?.failures).toEqual([
    ...["test/some.test.ts > test failed", "    one", "    two"],
    ...["test/broken.test.ts", "    no such file"],
  ]);
});

test("a command that fails after a clean count counts as failed", () => {
  expect(countOfAgent(["12 passed, 0 failed"], 2)?.failed).toBe(1);
  expect(countOfUnittest(["Ran 3 tests in 0.1s", "OK"], 1)?.failed).toBe(1);
  expect(countOfVitest({ testResults: [file("passed", "passed")] }, 1)?.failed).toBe(1);
});

test("a missing count is not a success", () => {
  expect(countOfAgent(["make: *** no rule"], 2)).toBeUndefined();
  expect(countOfUnittest(["Ran 0 tests in 0.0s", "OK"], 0)).toBeUndefined();
  expect(countOfUnittest(["ImportError"], 1)).toBeUndefined();
  expect(countOfVitest({ testResults: [] }, 0)).toBeUndefined();
});

test("unittest's failures, errors and skips", () => {
  const lines = ["Ran 9 tests in 0.1s", "", "FAILED (failures=1, errors=2, skipped=3)"];
  expect(countOfUnittest(lines, 1)).toMatchObject({
    passed: 3,
    failed: 3,
    skipped: 3,
    reasons: [],
  });
});

test("vitest's tests, skipped tests, and a file that could not be loaded", () => {
  const testResults = [
    file("passed", "passed", "pending", "todo"),
    file("failed", "failed"),
    file("failed"),
  ];
  expect(countOfVitest({ testResults }, 1)).toMatchObject({
    passed: 1,
    failed: 2,
    skipped: 2,
    reasons: ["test pending", "test todo"],
  });
});

/** @param {string} status @param {string[]} tests @returns {import("./vitest.mjs").TestFile} */
function file(status, ...tests) {
  const assertionResults = tests.map((state) => ({ status: state, fullName: `test ${state}` }));
  return { name: "some.test.ts", status, assertionResults };
}

test("the slowest tests come first, with their file", () => {
  const slow = { ...file("passed", "passed", "passed"), name: `${root}/test/some.test.ts` };
  slow.assertionResults = [
    { status: "passed", fullName: "short", duration: 20 },
    { status: "passed", fullName: "long", duration: 12_340 },
    { status: "pending", fullName: "left out", duration: null },
  ];
  expect(slowestTests({ testResults: [slow] }, 2)).toEqual([
    "  12.3 s  test/some.test.ts > long",
    "   0.0 s  test/some.test.ts > short",
  ]);
});

test("the slowest files come first, with the number of their tests", () => {
  const timed = (/** @type {string} */ name, /** @type {number} */ endTime) => ({
    ...file("passed", "passed"),
    name: `${root}/test/${name}`,
    startTime: 1_000,
    endTime,
  });
  const testResults = [timed("short.test.ts", 1_020), timed("long.test.ts", 61_000)];
  expect(slowestFiles({ testResults }, 1)).toEqual(["  60.0 s  test/long.test.ts (1)"]);
});
