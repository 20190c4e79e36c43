import { describe, expect, test } from "vitest";
import type { FrameJson } from "../../model/documents/documents.js";
import { type Unranked, withPutter } from "./putters.js";

const frame = (name: string): FrameJson => ({
  function: name,
  file: "/srv/app.py",
  line: 7,
  kind: "python",
});

function suspect(
  stack: string[],
  share: number,
  putters: string[],
  more: Partial<Unranked> = {},
): Unranked {
  return {
    share,
    liveBytes: 100 * share,
    growthBytesPerHour: 1000 * share,
    stack: stack.map(frame),
    domain: "python",
    pid: 42,
    ages: [{ olderThanMs: 0, bytes: 100 * share }],
    history: [],
    holder: {
      path: ["module app", "stats", ".by_route"],
      type: "dict",
      retainedBytes: 9,
      entries: 9,
      ...(putters.length === 0 ? {} : { putters: putters.map(frame) }),
    },
    advice: [{ id: "TM-A002", text: "Bound it." }],
    ...more,
  };
}

const leaves = (suspects: Unranked[]) =>
  suspects.map(({ stack, puts }) => [stack[0]?.function, puts]);

describe("who puts what others make into the holder", () => {
  const made = [
    suspect(["uuid4", "incoming", "main"], 0.6, ["observe"]),
    suspect(["route", "handle", "main"], 0.3, ["observe"]),
    suspect(["parse", "main"], 0.1, []),
  ];

  test("stands first, with the growth of what it puts there", () => {
    const all = withPutter(made, "python-leak", false);
    expect(leaves(all)).toEqual([
      ["observe", true],
      ["uuid4", undefined],
      ["route", undefined],
      ["parse", undefined],
    ]);
    expect(all[0]?.share).toBeCloseTo(0.9);
    expect(all[0]?.growthBytesPerHour).toBeCloseTo(900);
    expect(all[0]).toMatchObject({
      pid: 42,
      ages: [],
      holder: made[0]?.holder,
      advice: made[0]?.advice,
    });
  });

  test("stands behind who has it put things there", () => {
    expect(leaves(withPutter(made, "python-leak", true)).slice(0, 2)).toEqual([
      ["uuid4", undefined],
      ["observe", true],
    ]);
  });

  test("who makes what it puts there is no second suspect", () => {
    const own = [suspect(["append", "observe", "main"], 1, ["observe"])];
    expect(withPutter(own, "python-leak", false)).toEqual(own);
  });

  test("of several nobody knows which, and what no object holds nobody puts anywhere", () => {
    const several = [suspect(["uuid4"], 1, ["observe", "merge"])];
    expect(withPutter(several, "python-leak", false)).toEqual(several);
    expect(withPutter(made, "native-leak", false)).toEqual(made);
    expect(withPutter([], "python-leak", false)).toEqual([]);
  });

  test("objects that nobody was seen to make have its line", () => {
    const table = suspect([], 1, ["advance"], { type: "pyarrow.lib.Table" });
    expect(leaves(withPutter([table, table], "python-leak", false))).toEqual([
      ["advance", undefined],
      ["advance", undefined],
    ]);
  });
});
