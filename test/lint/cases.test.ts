/** Checks how many planted patterns the rules find, and that they report nothing in look-alikes. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { lintPaths } from "../../src/lint/index.js";
import type { LintFindingJson } from "../../src/model/documents/lint_document.js";

const folder = import.meta.dirname;
const pythonFiles = (name: string) =>
  readdirSync(join(folder, name))
    .filter((file) => file.endsWith(".py"))
    .map((file) => join(folder, name, file));

/** Lines with `# leak: ID...`: one of the ids must be reported there. */
function plantedIn(path: string): { line: number; ids: string[] }[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .flatMap((text, at) => {
      const ids = /# leak: (.*)/.exec(text)?.[1];
      return ids === undefined ? [] : [{ line: at + 1, ids: ids.split(" ") }];
    });
}

/** A decorator is reported for the function below it. */
function isAt(finding: LintFindingJson, line: number): boolean {
  const isDecorator =
    finding.text.startsWith("@") && finding.line < line && line - finding.line < 4;
  return isDecorator || (finding.line <= line && line <= finding.endLine);
}

describe("planted patterns", () => {
  test.each(pythonFiles("planted"))("%s", async (path) => {
    const { document } = await lintPaths({ paths: [path] });
    const planted = plantedIn(path);
    expect(planted.length).toBeGreaterThan(0);
    // A queue is reported where it is created.
    const isFound = ({ line, ids }: { line: number; ids: string[] }) =>
      document.findings.some(
        (finding) =>
          (isAt(finding, line) || finding.rule === "TM-L024") && ids.includes(finding.rule),
      );
    const missed = planted
      .filter((each) => !isFound(each))
      .map(({ line, ids }) => `${line} ${ids}`);
    expect(missed.length, missed.join(", ")).toBeLessThanOrEqual(planted.length * 0.1);
    const isPlanted = ({ line, endLine, text }: LintFindingJson) =>
      planted.some((each) => isAt({ line, endLine, text } as LintFindingJson, each.line));
    const unexpected = document.findings.filter(
      (finding) => finding.rule !== "TM-L024" && !isPlanted(finding),
    );
    expect(unexpected).toEqual([]);
  });
});

test.each(pythonFiles("good"))("look-alikes: %s", async (path) => {
  const { document } = await lintPaths({ paths: [path] });
  expect(document.findings).toEqual([]);
  expect(document.files).toBe(1);
});
