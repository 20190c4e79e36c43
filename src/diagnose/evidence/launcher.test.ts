import { expect, it } from "vitest";
import type { ProcessEvidence } from "./evidence.js";
import { treeOf, withoutLaunchers } from "./launcher.js";

const MIB = 2 ** 20;

/** Python processes have a version; the others are launchers. */
function process(pid: number, parentPid: number, python = "", seconds = 60): ProcessEvidence {
  return {
    pid,
    parentPid,
    command: ["x"],
    python,
    profiled: python !== "",
    startedMs: 0,
    endedMs: seconds * 1000,
    series: {
      pid,
      timesMs: Float64Array.of(1),
      values: new Map([["rssBytes", Float64Array.of(2 * MIB)]]),
    },
  };
}

const programOf = (processes: readonly ProcessEvidence[]) =>
  withoutLaunchers(processes).processes.map(({ pid }) => pid);

it("finds the program behind a chain of launchers, and keeps the figures of the whole tree", () => {
  const tree = [
    process(1, 0),
    process(2, 1, "", 0.1), // a step of the script
    process(3, 1),
    process(4, 3, "3.13.0"),
    process(5, 4, "3.13.0"),
  ];
  const program = withoutLaunchers(tree);
  expect(program.processes.map(({ pid }) => pid)).toEqual([4, 5]);
  expect(treeOf(program)).toEqual({ root: tree[0], members: 4 });
});

it("leaves a tree as it is whose root is the program, or starts several", () => {
  expect(programOf([process(1, 0, "3.13.0"), process(2, 1, "3.13.0")])).toEqual([1, 2]);
  expect(programOf([process(1, 0), process(2, 1, "3.13.0"), process(3, 1)])).toEqual([1, 2, 3]);
  expect(programOf([process(1, 0), process(2, 1)])).toEqual([1, 2]);
  expect(programOf([])).toEqual([]);
  expect(treeOf({ processes: [] })).toBeNull();
});
