import type { FileFacts } from "../flow/file_facts.js";
import type { Call } from "../scopes/module.js";
import { isDropped, statementOf } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const emptyCacheInLoop: Rule = {
  id: "TM-L037",
  name: "empty-cache-in-loop",
  severity: "warning",
  finds: "`torch.cuda.empty_cache()` in each step or request.",
  why: "It does not free tensors that are still referenced. It returns cached blocks, which the next step must allocate again. This is slower and increases fragmentation.",
  speed: "No growth, but each call synchronizes the device.",
  before: `
import torch

for batch in loader:
    train_step(batch)
    torch.cuda.empty_cache()
`,
  after: `
import torch

for batch in loader:
    train_step(batch)
`,
  ignore: "Another process needs the memory between the steps.",
  proof: "`tidemark gpu SNAPSHOT` shows the segments that are freed and allocated in each step.",
  *check(file) {
    const reported = new Set<SyntaxNode>();
    for (const call of file.module.callsOf("empty_cache")) {
      const repeat = file.repeats.of(call.node);
      const full = file.names.resolve(call.callee) ?? call.callee.text;
      const isInHandler = isAfterFailure(call.node);
      if (
        repeat === null ||
        isInHandler ||
        reported.has(repeat.node) || // of the branches for each kind of device, the first
        isRetry(call, file) ||
        !/cuda|torch|mps|xpu|^empty_cache$/.test(full) ||
        isEveryFewSteps(call.node)
      ) {
        continue;
      }
      reported.add(repeat.node);
      const statement = statementOf(call.node);
      const isAlone =
        isDropped(call.node) &&
        statement.parent !== null &&
        statement.parent.children.length > 1 &&
        statement.source.lineText(statement.line).trim() === statement.text;
      const start = statement.source.startOfLine(statement.line);
      const end = statement.source.startOfLine(statement.endLine + 1);
      yield {
        node: call.node,
        message: `${code(call.node.text)} ${repeat.text} releases memory that the next iteration allocates again`,
        ...(isAlone
          ? { fix: { description: "remove the call", edits: [{ start, end, text: "" }] } }
          : {}),
      };
    }
  },
};

/** The function is called in loops only after a failure. */
function isRetry({ scope }: Call, { repeats }: FileFacts): boolean {
  const around = scope.functionAround;
  const looped =
    around === null ? [] : repeats.callersOf(around).filter(({ node }) => repeats.loopAround(node));
  return looped.length > 0 && looped.every(({ node }) => isAfterFailure(node));
}

/** In `except torch.cuda.OutOfMemoryError`, or behind a condition on the memory. */
function isAfterFailure(node: SyntaxNode): boolean {
  for (let outer = node.parent; outer !== null; outer = outer.parent) {
    if (outer.kind === "except_clause" || outer.kind === "finally_clause") {
      return true;
    }
  }
  return false;
}

/** `if step % 100 == 0`, `if memory > limit`. */
function isEveryFewSteps(node: SyntaxNode): boolean {
  for (let outer = node.parent; outer !== null; outer = outer.parent) {
    if (
      outer.kind === "if_statement" &&
      /%|memory|reserved|allocated|oom/i.test(outer.child("condition")?.text ?? "")
    ) {
      return true;
    }
  }
  return false;
}
