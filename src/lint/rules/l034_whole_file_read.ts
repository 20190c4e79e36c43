import { argumentsOf, around } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const wholeFileRead: Rule = {
  id: "TM-L034",
  name: "whole-data-set-read",
  severity: "warning",
  finds: "A whole file, table or data set read into memory only to go through it once.",
  why: "All rows are in memory while one is looked at.",
  speed: "Once, by the size of the data: the peak of the program.",
  before: `
def count(path):
    with open(path) as f:
        return sum(1 for line in f.readlines() if line.strip())
`,
  after: `
def count(path):
    with open(path) as f:
        return sum(1 for line in f if line.strip())
`,
  ignore: "The file is known to be small.",
  proof: "`tidemark lines REC --at peak` shows the bytes at the line that reads.",
  *check(file) {
    for (const loop of [
      ...file.module.nodesOf("for_statement"),
      ...clauses(file.module.nodesOf("list_comprehension")),
    ]) {
      const right = loop.child("right");
      const read = right === null ? null : wholeRead(right);
      if (read !== null) {
        const { node, what, isLines } = read;
        const receiver = node.child("function")?.child("object");
        yield {
          node,
          message: `${code(what)} reads everything before the loop looks at the first row`,
          ...(isLines && receiver
            ? {
                fix: {
                  description: `iterate over ${receiver.text}`,
                  edits: [{ start: receiver.end, end: node.end, text: "" }],
                },
              }
            : {}),
        };
      }
    }
    for (const call of file.module.callsOf("readlines")) {
      const outer = around(call.node);
      const isIterated =
        outer?.kind === "for_in_clause" && outer.parent?.kind !== "list_comprehension";
      const receiver = call.receiver;
      if (isIterated && argumentsOf(call.node).length === 0 && receiver !== null) {
        yield {
          node: call.node,
          message: `${code(call.node.text)} reads everything before the loop looks at the first row`,
          fix: {
            description: `iterate over ${receiver.text}`,
            edits: [{ start: receiver.end, end: call.node.end, text: "" }],
          },
        };
      }
    }
    for (const call of file.module.callsOf("list")) {
      const [first] = argumentsOf(call.node);
      const isData =
        first !== undefined &&
        call.receiver === null &&
        /^(?:\w*(?:data_?loader|dataset|train_loader|test_loader|val_loader)|csv\.(?:Dict)?[rR]eader\(.*\)|pq\.\S*iter_batches\(.*\)|cursor|cur)$/.test(
          first.text,
        );
      if (isData && first !== undefined) {
        yield {
          node: call.node,
          message: `${code(call.node.text.slice(0, 60))} holds every row of the data set at the same time`,
        };
      }
    }
  },
};

function clauses(comprehensions: readonly SyntaxNode[]): SyntaxNode[] {
  return comprehensions.flatMap(({ children }) =>
    children.filter(({ kind }) => kind === "for_in_clause"),
  );
}

interface WholeRead {
  readonly node: SyntaxNode;
  readonly what: string;
  readonly isLines: boolean;
}

/** `f.readlines()`, `f.read().splitlines()`, `cursor.fetchall()`, also below `enumerate`, `list` and `tqdm`. */
function wholeRead(iterable: SyntaxNode): WholeRead | null {
  if (iterable.kind !== "call") {
    return null;
  }
  const callee = iterable.child("function");
  const [first] = argumentsOf(iterable);
  if (callee?.kind === "identifier") {
    return /^(?:enumerate|tqdm|reversed|map|filter|zip)$/.test(callee.text) &&
      first !== undefined &&
      callee.text !== "reversed"
      ? wholeRead(first)
      : null;
  }
  const method = callee?.child("attribute")?.text;
  const object = callee?.child("object");
  if (method === "readlines" && first === undefined) {
    return { node: iterable, what: iterable.text, isLines: true };
  }
  if (method === "fetchall") {
    return /PRAGMA|cursor\.execute\(["']SHOW/i.test(iterable.text)
      ? null
      : { node: iterable, what: iterable.text.slice(0, 60), isLines: false };
  }
  const isSplit =
    method === "splitlines" ||
    (method === "split" && /^["'](?:\\n|\\r\\n)["']$/.test(first?.text ?? ""));
  const inner =
    object?.kind === "call" ? object.child("function")?.child("attribute")?.text : undefined;
  const isRead =
    isSplit &&
    (inner === "read" || inner === "read_text") &&
    argumentsOf(object as SyntaxNode).length === 0;
  return isRead ? { node: iterable, what: iterable.text.slice(0, 60), isLines: false } : null;
}
