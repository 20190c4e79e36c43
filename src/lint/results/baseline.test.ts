import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { baselineText, beyondBaseline } from "./baseline.js";

const folder = mkdtempSync(join(tmpdir(), "baseline-"));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, "known.txt");
const finding = (file: string, text: string, rule = "TM-L001") => ({
  file: join(folder, file),
  rule,
  text,
});

function save(...findings: ReturnType<typeof finding>[]): void {
  writeFileSync(path, baselineText(findings, path));
}

describe("a baseline", () => {
  it("names files from its own folder", () => {
    save(finding("app/a.py", "x[k] = v"));
    expect(baselineText([finding("app/a.py", "x[k] = v")], path)).toMatch(
      /^#.*\nTM-L001 app\/a\.py [0-9a-f]{12}\n$/,
    );
    expect(beyondBaseline([finding("app/a.py", "  x[k] = v")], path)).toEqual([]);
  });

  it("covers as many findings on equal lines as it accepted", () => {
    const known = finding("a.py", "x.append(y)");
    save(known, known);
    expect(beyondBaseline([known, known], path)).toEqual([]);
    expect(beyondBaseline([known, known, known], path)).toEqual([known]);
  });

  it("covers neither another rule, nor another file, nor a changed line", () => {
    save(finding("a.py", "x[k] = v"));
    const others = [
      finding("a.py", "x[k] = v", "TM-L002"),
      finding("b.py", "x[k] = v"),
      finding("a.py", "x[k] = w"),
    ];
    expect(beyondBaseline(others, path)).toEqual(others);
  });

  it("is refused if it is not one", () => {
    writeFileSync(path, "import os\n");
    expect(() => beyondBaseline([], path)).toThrow(/is not a baseline of tidemark lint/);
    expect(() => beyondBaseline([], join(folder, "none.txt"))).toThrow(/cannot be read/);
  });
});
