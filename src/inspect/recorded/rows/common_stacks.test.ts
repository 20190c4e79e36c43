import { describe, expect, test } from "vitest";
import type { FrameJson, SummarySiteJson } from "../../../model/documents/documents.js";
import { inCommonTerms } from "./common_stacks.js";

/** "fill /srv/app.py:10", leaf first; a frame of an object file is native. */
function siteOf(...stack: string[]): SummarySiteJson {
  return {
    stack: stack.map(frameOf),
    domain: "python",
    liveBytes: 1,
    liveObjects: 1,
    liveBytesAtPeak: 1,
    allocatedBytes: 1,
    allocatedObjects: 1,
    standardErrorBytes: 0,
    standardErrorAtPeakBytes: 0,
    standardErrorAllocatedBytes: 0,
  };
}

function frameOf(text: string): FrameJson {
  const [, name = "", file = "", line = "0"] = /^(\S*) ([^:]+):?(\d*)$/.exec(text) ?? [];
  const kind = file.includes(".so") ? "native" : "python";
  return { function: name, file, line: Number(line), kind };
}

const textOf = ({ stack }: SummarySiteJson) =>
  stack.map((frame) => `${frame.function} ${frame.file}:${frame.line}`);

/** Both sides as text. */
function common(a: readonly SummarySiteJson[], b: readonly SummarySiteJson[]): string[][][] {
  return inCommonTerms(a, b).map((side) => side.map(textOf));
}

describe("inCommonTerms", () => {
  test("a bare name and a qualified one of the same line become the qualified one", () => {
    const [a, b] = common(
      [siteOf("fill app.py:10", "<module> app.py:23"), siteOf("inner app.py:15")],
      [
        siteOf("Store.fill /srv/app.py:10", "<module> /srv/app.py:23"),
        siteOf("Store.parse.<locals>.inner /srv/app.py:15"),
      ],
    );
    expect(a).toEqual(b);
    expect(a?.[0]?.[0]).toBe("Store.fill /srv/app.py:10");
  });

  test("functions of other names or lines stay apart", () => {
    const [a, b] = common([siteOf("fill /a.py:10")], [siteOf("Store.drain /a.py:10")]);
    expect([a, b]).toEqual([[["fill /a.py:10"]], [["Store.drain /a.py:10"]]]);
  });

  test("a relative path that fits two files stays as it is", () => {
    const [a] = common([siteOf("f app.py:1")], [siteOf("f /x/app.py:1"), siteOf("f /y/app.py:1")]);
    expect(a).toEqual([["f app.py:1"]]);
  });

  test("native frames that only one side has are left out; a stack of native code keeps them", () => {
    const native = [siteOf("malloc libc.so", "load /a.py:3"), siteOf("run libworker.so")];
    const [a, b] = common(native, [siteOf("load /a.py:3")]);
    expect(a).toEqual([["load /a.py:3"], ["run libworker.so:0"]]);
    expect(b).toEqual([["load /a.py:3"]]);
    const both = common(native, native)[0];
    expect(both?.[0]).toEqual(["malloc libc.so:0", "load /a.py:3"]);
  });

  test("an object's offset is no name: the address was written in the place of one", () => {
    const [a] = common([siteOf("libc.so.6+0x389b1 /lib/libc.so.6")], [siteOf(" /lib/libc.so.6")]);
    expect(a).toEqual([[" /lib/libc.so.6:0"]]);
  });

  test("frames of a tool that started the program are left out, those of the program are not", () => {
    const runpy = ["_run_code <frozen runpy>:88", "run_path <frozen runpy>:286"];
    const tool = "_run /usr/lib/python3/site-packages/memray/commands/run.py:83";
    const [a, b] = common(
      [
        siteOf("load /srv/app.py:9", "main /srv/app.py:20", ...runpy, tool),
        siteOf("g /b.py:1", ...runpy, "f /a.py:2"),
      ],
      [siteOf("load /srv/app.py:9", "main /srv/app.py:20")],
    );
    expect(a).toEqual([b?.[0], ["g /b.py:1", ...runpy, "f /a.py:2"]]);
  });

  test("lines of the program's own code, as scalene counts them", () => {
    const stack = siteOf("decode /usr/lib/python3.12/json/decoder.py:353", "load /srv/app.py:9");
    const [, b] = common([siteOf("load /srv/app.py:9")], [stack]);
    expect(b).toEqual([["load /srv/app.py:9"]]);
  });

  test("lines of the innermost code, as tracemalloc counts them", () => {
    const stack = siteOf("decode /usr/lib/python3.12/json/decoder.py:353", "load /srv/app.py:9");
    const [, b] = common([siteOf("decode /usr/lib/python3.12/json/decoder.py:353")], [stack]);
    expect(b).toEqual([["decode /usr/lib/python3.12/json/decoder.py:353"]]);
  });
});
