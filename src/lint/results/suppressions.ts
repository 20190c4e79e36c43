import type { Comment } from "../syntax/tree.js";

/** `# tidemark: ignore[TM-L012] reason`, at the end of the line or alone on the line before; without ids for all rules. */
const IGNORE = /#\s*tidemark:\s*ignore(-file)?(?:\[([^\]]*)\])?/i;

/** Comments that suppress the same finding in ruff, flake8 and pylint. */
const NOQA =
  /#\s*noqa:.*?\b(?:B019|W1518)\b|#\s*pylint:\s*disable=.*?(?:\bmethod-cache-max-size-none\b|\bW1518\b)/i;

/** The rules that the comments of a file suppress, and where. */
export class Suppressions {
  readonly #lines = new Map<number, Set<string>>();
  readonly #file = new Set<string>();

  constructor(comments: readonly Comment[], lineText: (line: number) => string) {
    for (const { text, line } of comments) {
      if (NOQA.test(text)) {
        this.#add(line, "TM-L007");
      }
      const [whole, ofFile, list] = IGNORE.exec(text) ?? [];
      if (whole === undefined) {
        continue;
      }
      const rules =
        list === undefined ? ["all"] : list.split(",").map((id) => id.trim().toUpperCase());
      const isAlone = lineText(line).trimStart().startsWith("#");
      for (const rule of rules) {
        if (ofFile !== undefined) {
          this.#file.add(rule);
        } else {
          this.#add(isAlone ? line + 1 : line, rule);
        }
      }
    }
  }

  /** Whether a comment on one of the lines of the finding, or on the line before, names the rule. */
  covers(rule: string, name: string, line: number, endLine: number): boolean {
    const names = ["all", rule, name.toUpperCase()];
    if (names.some((each) => this.#file.has(each))) {
      return true;
    }
    for (let at = line; at <= endLine; at++) {
      const rules = this.#lines.get(at);
      if (rules !== undefined && names.some((each) => rules.has(each))) {
        return true;
      }
    }
    return false;
  }

  #add(line: number, rule: string): void {
    const rules = this.#lines.get(line) ?? new Set();
    this.#lines.set(line, rules.add(rule));
  }
}
