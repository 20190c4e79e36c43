import { describe, expect, it } from "vitest";
import { VERDICT_KINDS } from "../../model/documents/diagnosis_document.js";
import { checkSource } from "../check_source.js";
import { pythonParser } from "../grammar.js";
import { RULES } from "./index.js";

const parse = await pythonParser();

/** The ids that are reported for a text. */
function idsOf(text: string): string[] {
  const tree = parse(text);
  if (tree === null) {
    throw new Error("the parser did not finish");
  }
  const { findings } = checkSource(tree, "example.py", () => true, new Set());
  return findings.map(({ rule }) => rule.id);
}

describe("each rule", () => {
  it.each(RULES.map((rule) => [rule.id, rule] as const))(
    "%s reports its example, and nothing in the corrected one",
    (id, rule) => {
      expect(idsOf(rule.before)).toContain(id);
      expect(idsOf(rule.after)).toEqual([]);
    },
  );

  it("has an id and a name of its own", () => {
    expect(RULES.map(({ id }) => id)).toEqual(
      RULES.map((_rule, at) => `TM-L${String(at + 1).padStart(3, "0")}`),
    );
    expect(new Set(RULES.map(({ name }) => name)).size).toBe(RULES.length);
  });

  it("names only existing kinds of verdicts as proof", () => {
    const named = RULES.flatMap(({ proof }) =>
      [...proof.matchAll(/kind `([\w-]+)`(?: or `([\w-]+)`)?/g)].flatMap(([, ...kinds]) => kinds),
    ).filter((kind) => kind !== undefined);
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((kind) => !VERDICT_KINDS.some((known) => known === kind))).toEqual([]);
  });
});
