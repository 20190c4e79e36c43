import type { FileFacts } from "../flow/file_facts.js";
import { bare, isInside, mentions, positionals } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const concatInLoop: Rule = {
  id: "TM-L036",
  name: "concat-in-loop",
  severity: "warning",
  finds:
    "A data frame, array or tensor that a loop extends with `concat`, `append`, `cat` or `vstack`.",
  why: "Each iteration copies everything so far. The old and the new copy are in memory at the same time, and freed copies fragment the heap.",
  speed:
    "Twice the size of the result at the peak; allocated bytes grow with the square of the number of iterations.",
  before: `
import pandas as pd

table = pd.DataFrame()
for path in paths:
    table = pd.concat([table, pd.read_csv(path)])
`,
  after: `
import pandas as pd

table = pd.concat([pd.read_csv(path) for path in paths])
`,
  ignore: "The loop has only a few iterations, or keeps a window of fixed length.",
  proof: "`tidemark lines REC` shows allocated bytes far above live bytes at the line.",
  *check(file) {
    for (const statement of file.module.nodesOf("assignment")) {
      const left = statement.child("left");
      const right = statement.child("right");
      const call = right === null ? null : joinOf(bare(right));
      const loop =
        call?.kind === "call" && left !== null ? file.repeats.loopAround(statement) : null;
      if (call?.kind !== "call" || left === null || loop === null) {
        continue;
      }
      const callee = call.child("function");
      const full = callee === null ? "" : (file.names.resolve(callee) ?? callee.text);
      const [first] = positionals(call);
      const isJoin = JOINS.test(full) && first !== undefined && joins(call, left);
      const isOldAppend =
        callee?.kind === "attribute" &&
        callee.child("attribute")?.text === "append" &&
        callee.child("object")?.text === left.text &&
        !/^(?:self\.)?\w*(?:list|path)/.test(left.text) &&
        first !== undefined;
      if (
        (isJoin || isOldAppend) &&
        !isOncePerRound(left, statement, loop) &&
        !isReplaced(left, statement, loop, file)
      ) {
        yield {
          node: statement,
          message: `each iteration copies all of ${code(left.text)}: collect the parts in a list and join them once`,
        };
      }
    }
  },
};

const JOINS =
  /^(?:pandas\.(?:concat|DataFrame\.append)|pd\.concat|polars\.concat|pl\.concat|(?:numpy|np|cupy|jax\.numpy)\.(?:append|concatenate|vstack|hstack|dstack|stack|r_|column_stack|row_stack|insert)|torch\.(?:cat|concat|concatenate|vstack|hstack|stack|column_stack)|xarray\.concat|pyarrow\.concat_tables|tensorflow\.concat|tf\.concat|scipy\.sparse\.(?:vstack|hstack))$/;

/** `part if table is None else pd.concat([table, part])` joins, too. */
function joinOf(value: SyntaxNode): SyntaxNode {
  const branch =
    value.kind === "conditional_expression"
      ? value.children.find(({ kind }) => kind === "call")
      : undefined;
  return branch ?? value;
}

/** The target is one of the joined parts. */
function joins(call: SyntaxNode, target: SyntaxNode): boolean {
  const [first, second] = positionals(call);
  if (first === undefined) {
    return false;
  }
  const list = bare(first);
  const parts =
    list.kind === "list" || list.kind === "tuple"
      ? list.children
      : [first, ...(second === undefined ? [] : [second])];
  return parts.some((part) => bare(part).text === target.text);
}

/** `if i == last: x = cat(...)` joins once, `parts[i] = cat([parts[i], x])` each part once. */
function isOncePerRound(target: SyntaxNode, statement: SyntaxNode, loop: SyntaxNode): boolean {
  const counted = /^(?:range|enumerate)\(/.test(loop.child("right")?.text ?? "");
  const left = loop.child("left");
  const root = /^\w+/.exec(target.text)?.[0] ?? "";
  if (left !== null && mentions(left, root)) {
    return true; // `for part in parts: part = cat([head, part])`
  }
  const index = left?.kind === "identifier" ? left : left?.children[0];
  if (!counted || index === undefined || index === null) {
    return false;
  }
  for (let outer = statement.parent; outer !== null && outer !== loop; outer = outer.parent) {
    const condition = outer.kind === "if_statement" ? outer.child("condition") : null;
    if (condition !== null) {
      const isOne = new RegExp(`(?:^|[^\\w.])${index.text}\\s*==|==\\s*${index.text}\\b`);
      if (isOne.test(condition.text)) {
        return true;
      }
    }
  }
  return target.kind === "subscript" && target.child("subscript")?.text === index.text;
}

/** The loop replaces it, or cuts it to a window, so that it does not grow from one iteration to the next. */
function isReplaced(
  target: SyntaxNode,
  statement: SyntaxNode,
  loop: SyntaxNode,
  file: FileFacts,
): boolean {
  const slot = file.slots.of(target);
  return (
    slot !== null &&
    file.slots
      .writesOf(slot)
      .some(
        ({ target: other, value, kind }) =>
          kind !== "augment" &&
          other.parent !== statement &&
          isInside(other, loop) &&
          !isFirstRound(other, loop) &&
          !(value !== null && mentions(value, target.text) && !/\[/.test(value.text)),
      )
  );
}

/** `if table is None: table = part`, `if i == 0: ...`: the first round only. */
function isFirstRound(node: SyntaxNode, loop: SyntaxNode): boolean {
  for (let outer = node.parent; outer !== null && outer !== loop; outer = outer.parent) {
    if (outer.kind === "if_statement") {
      return /is None|== 0|not \w+$|len\(|\.empty|first/.test(outer.child("condition")?.text ?? "");
    }
    if (outer.kind === "else_clause") {
      return false;
    }
  }
  return false;
}
