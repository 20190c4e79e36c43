import { describe, expect, it } from "vitest";
import type { FrameJson } from "../../model/documents/documents.js";
import { placeOf, shortPath } from "./sites.js";

function frame(text: string): FrameJson {
  const [name = "", file = "", line = "0", kind = "python"] = text.split(" ");
  return { function: name, file, line: Number(line), kind: kind as FrameJson["kind"] };
}

describe("places", () => {
  it("shows a path relative to its package, to the current directory, or unchanged", () => {
    expect(shortPath("/x/lib/python3.11/site-packages/numpy/npyio.py")).toBe("numpy/npyio.py");
    expect(shortPath("/x/lib/python3.11/json/decoder.py")).toBe("json/decoder.py");
    expect(shortPath(`${process.cwd()}/src/a.py`)).toBe("src/a.py");
    expect(shortPath("/srv/elsewhere/a.py")).toBe("/srv/elsewhere/a.py");
    expect(placeOf(frame("f /usr/lib/libtorch.so 0 native"))).toBe("libtorch.so");
    expect(placeOf(frame("f /x/_core.cpython-312-x86_64-linux-gnu.so 0 native"))).toBe("_core.so");
    expect(shortPath("<frozen importlib._bootstrap>")).toBe("importlib._bootstrap");
    expect(placeOf(frame("f <string> 3"))).toBe("<string>:3");
  });
});
