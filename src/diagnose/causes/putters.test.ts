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

describe("functions that add objects of other creators to the holder", () => {
  const made = [
    suspect(["uuid4", "incoming", "main"], 0.6, ["observe"]),
    suspect(["route", "handle", "main"], 0.3, ["observe"]),
    suspect(["parse", "main"], 0.1, []),
  ];

  test("comes first, with the growth of the objects that it adds", () => {
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

  test("comes after the function that calls it", () => {
    expect(leaves(withPutter(made, "python-leak", true)).slice(0, 2)).toEqual([
      ["uuid4", undefined],
      ["observe", true],
    ]);
  });

  test("the creator of the added objects is not a second suspect", () => {
    const own = [suspect(["append", "observe", "main"], 1, ["observe"])];
    expect(withPutter(own, "python-leak", false)).toEqual(own);
  });

  test("several candidates, or objects without a holder, give no result", () => {
    const several = [suspect(["uuid4"], 1, ["observe", "merge"])];
    expect(withPutter(several, "python-leak", false)).toEqual(several);
    expect(withPutter(made, "native-leak", false)).toEqual(made);
    expect(withPutter([], "python-leak", false)).toEqual([]);
  });

  test("objects without a known creator get its line", () => {
    const table = suspect([], 1, ["advance"], { type: "pyarrow.lib.Table" });
    expect(leaves(withPutter([table, table], "python-leak", false))).toEqual([
      ["advance", undefined],
      ["advance", undefined],
    ]);
  });
});
