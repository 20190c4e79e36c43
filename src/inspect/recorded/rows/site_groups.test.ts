import { describe, expect, it } from "vitest";
import type { FrameJson, SummarySiteJson } from "../../../model/documents/documents.js";
import { groupSites, splitStack } from "./site_groups.js";

function frame(text: string): FrameJson {
  const [name = "", file = "", line = "0", kind = "python"] = text.split(" ");
  return { function: name, file, line: Number(line), kind: kind as FrameJson["kind"] };
}

function site(
  stack: string[],
  liveBytes: number,
  error: number,
  domain = "python",
): SummarySiteJson {
  return {
    stack: stack.map(frame),
    domain: domain as SummarySiteJson["domain"],
    liveBytes,
    liveObjects: 1,
    liveBytesAtPeak: liveBytes * 2,
    allocatedBytes: liveBytes * 3,
    allocatedObjects: 3,
    standardErrorBytes: error,
    standardErrorAtPeakBytes: error,
    standardErrorAllocatedBytes: error,
  };
}

describe("splitStack", () => {
  it("shows the user's innermost frame, with the library's leaf", () => {
    const stack = [
      "decode /usr/lib/python3.11/json/decoder.py 337",
      "load /srv/app.py 41",
      "main /srv/app.py 90",
    ].map(frame);
    expect(splitStack(stack)).toEqual({ headline: stack[1], leaf: stack[0] });
    expect(splitStack(stack.slice(1))).toEqual({ headline: stack[1], leaf: null });
  });

  it("skips the interpreter's own C code", () => {
    const stack = [
      "_PyObject_Malloc /usr/lib/libpython3.12.so.1.0 0 native",
      "PyList_New /usr/bin/python3.12 0 native",
      "load /srv/app.py 41",
    ].map(frame);
    expect(splitStack(stack)).toEqual({ headline: stack[2], leaf: null });
    expect(splitStack(stack.slice(0, 2)).headline).toBe(stack[0]);
  });

  it("falls back to the leaf, and reports a missing stack", () => {
    const library = [frame("f /usr/lib/python3.11/a.py 1")];
    expect(splitStack(library)).toEqual({ headline: library[0], leaf: null });
    expect(splitStack([]).headline.function).toBe("(no Python stack)");
  });
});

describe("groupSites", () => {
  it("joins cells of a kernel, but not cells with different numbers", () => {
    const cells = ["<module> /tmp/ipykernel_9/411.py 1", "<module> /tmp/ipykernel_9/512.py 1"];
    expect(groupSites(cells.map((cell) => site([cell], 100, 3)))).toMatchObject([
      { live: { bytes: 200 }, liveObjects: 2 },
    ]);
    const numbered = ["<module> <ipython-input-4-ab12> 1", "<module> <ipython-input-5-ab12> 1"];
    expect(groupSites(numbered.map((cell) => site([cell], 100, 3)))).toHaveLength(2);
  });

  it("joins stacks that differ only further out; their variances add", () => {
    const groups = groupSites([
      site(["f /srv/a.py 1", "g /srv/a.py 2"], 100, 3),
      site(["f /srv/a.py 1", "h /srv/a.py 3"], 50, 4),
      site(["f /srv/a.py 1"], 7, 1, "native"),
    ]);
    expect(groups).toHaveLength(2);
    expect(groups[0]?.live).toEqual({ bytes: 150, standardErrorBytes: 5 });
    expect(groups[0]?.atPeak.bytes).toBe(300);
  });
});
