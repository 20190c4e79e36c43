import type { FileFacts } from "../flow/file_facts.js";
import {
  argumentsOf,
  around,
  assignedTo,
  dottedText,
  keyword,
  statementOf,
  within,
} from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import { callsMatching } from "./made_again.js";
import type { Report, Rule } from "./rule.js";

export const wholeFileRead: Rule = {
  id: "TM-L034",
  name: "whole-data-set-read",
  severity: "warning",
  finds:
    "A whole file, table or data set is read into memory although the code goes through it only once.",
  why: "All rows are in memory although only one is used at a time.",
  speed: "Once, by the size of the data. It raises the peak of the program.",
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
    const loops = [
      ...file.module.nodesOf("for_statement"),
      ...clauses(file.module.nodesOf("list_comprehension")),
    ];
    for (const loop of loops) {
      const right = loop.child("right");
      const read = right === null ? null : wholeRead(right);
      if (read !== null && !(read.isQuery && (keepsRows(loop) || asksForFew(loop, file)))) {
        yield reportOf(read, loop);
      }
    }
    for (const call of file.module.callsOf("readlines")) {
      const outer = around(call.node);
      const isIterated =
        outer?.kind === "for_in_clause" && outer.parent?.kind !== "list_comprehension";
      if (isIterated && argumentsOf(call.node).length === 0) {
        yield reportOf({ node: call.node, isLines: true, isQuery: false }, outer);
      }
    }
    for (const call of file.module.callsOf("list")) {
      const [first] = argumentsOf(call.node);
      if (first !== undefined && call.receiver === null && isRowSource(first)) {
        if (!isUsedAgain(call.node, file) && statementOf(call.node).kind !== "raise_statement") {
          yield {
            node: call.node,
            message: `${code(call.node.text.slice(0, 60))} holds every row of the data set at the same time`,
          };
        }
      }
    }
    for (const call of callsMatching(TABLES, file)) {
      if (!hasLimit(call.node) && isOnlyIterated(call.node, file)) {
        yield {
          node: call.node,
          message: `${code(call.callee.text)} reads the whole table before the loop processes the first row: pass ${code("chunksize")}`,
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
  /** `f.readlines()`: a file gives its lines one by one. */
  readonly isLines: boolean;
  /** The rows of a database. */
  readonly isQuery: boolean;
}

function reportOf({ node, isLines }: WholeRead, loop: SyntaxNode): Report {
  const message = `${code(node.text.slice(0, 60))} reads everything before the loop processes the first row`;
  const receiver = node.child("function")?.child("object");
  return isLines && receiver && isUntouched(receiver, loop)
    ? {
        node,
        message,
        fix: {
          description: `iterate over ${receiver.text}`,
          edits: [{ start: receiver.end, end: node.end, text: "" }],
        },
      }
    : { node, message };
}

/** The body neither uses the open file nor changes files: it finds what `readlines` found before the loop began. */
function isUntouched(opened: SyntaxNode, loop: SyntaxNode): boolean {
  const body = loop.child("body")?.text ?? "";
  const name = dottedText(opened);
  const isUsed =
    name !== null && new RegExp(`(?<![\\w.])${name.replaceAll(".", "\\.")}\\b`).test(body);
  return (
    !isUsed &&
    !/\b(?:open|write\w*|unlink|remove|rename|replace|truncate|move|copy\w*)\s*\(/.test(body)
  );
}

/** `f.readlines()`, `f.read().splitlines()`, `cursor.fetchall()`, also below `enumerate`, `list` and `tqdm`. */
function wholeRead(iterable: SyntaxNode): WholeRead | null {
  if (iterable.kind !== "call") {
    return null;
  }
  const callee = iterable.child("function");
  const [first] = argumentsOf(iterable);
  if (callee?.kind === "identifier") {
    return /^(?:enumerate|tqdm|map|filter|zip)$/.test(callee.text) && first !== undefined
      ? wholeRead(first)
      : null;
  }
  const method = callee?.child("attribute")?.text;
  const object = callee?.child("object");
  if (method === "readlines" && first === undefined) {
    return { node: iterable, isLines: true, isQuery: false };
  }
  if (method === "fetchall") {
    return { node: iterable, isLines: false, isQuery: true };
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
  return isRead ? { node: iterable, isLines: false, isQuery: false } : null;
}

/** A comprehension, or a loop that collects the rows, holds them anyway. */
function keepsRows(loop: SyntaxNode): boolean {
  const body = loop.child("body");
  return (
    loop.kind === "for_in_clause" ||
    body === null ||
    [...within(body, "call")].some((call) =>
      /^(?:append|add|extend|update|setdefault|insert)$/.test(
        call.child("function")?.child("attribute")?.text ?? "",
      ),
    ) ||
    [...within(body, "assignment")].some((node) => node.child("left")?.kind === "subscript")
  );
}

/** Tables of a catalog have few rows, and so has a query with a limit. */
function asksForFew(loop: SyntaxNode, file: FileFacts): boolean {
  const scope = file.module.scopeOf(loop).functionAround;
  return /information_schema|sqlite_master|pg_catalog|pg_(?:class|constraint|index|type)\b|\bPRAGMA\b|\bSHOW [A-Z]|\bDESCRIBE\b|\b(?:user|all|dba)_(?:tables|views|tab_|cons|ind_|sequences)|\bLIMIT\b|\.limit\(/.test(
    scope?.node.text ?? "",
  );
}

/** Objects that yield their rows one by one: a loader, a CSV reader, a cursor. */
function isRowSource(node: SyntaxNode): boolean {
  return /^(?:\w*(?:data_?loader|dataset|train_loader|test_loader|val_loader)|csv\.(?:Dict)?[rR]eader\((?!(?:io\.)?StringIO).*\)|pq\.\S*iter_batches\(.*\)|cursor|cur)$/s.test(
    node.text,
  );
}

/** The list is indexed, measured, sorted, or gone through more than once. */
function isUsedAgain(call: SyntaxNode, file: FileFacts): boolean {
  const target = assignedTo(call);
  const slot = target === null ? null : file.slots.of(target);
  if (slot === null) {
    return false;
  }
  const reads = file.slots.references(slot).filter((node) => node !== target);
  return reads.length > 1 || reads.some((node) => around(node)?.kind === "subscript");
}

/** These can give a table in parts. */
const TABLES = /^(?:pandas|pd)\.read_(?:csv|table|fwf|json|sql|sql_query|sql_table)$/;

function hasLimit(call: SyntaxNode): boolean {
  return ["chunksize", "nrows", "iterator"].some((name) => keyword(call, name) !== null);
}

/** The table is used only in `for row in table.itertuples()`. */
function isOnlyIterated(call: SyntaxNode, file: FileFacts): boolean {
  const target = assignedTo(call);
  if (target === null) {
    const rows = around(call);
    return rows !== null && isIteration(rows);
  }
  const slot = target.kind === "identifier" ? file.slots.of(target) : null;
  if (slot?.kind !== "local" || file.slots.writesOf(slot).length !== 1) {
    return false;
  }
  const reads = file.slots.references(slot).filter((node) => node !== target);
  const [only] = reads;
  const rows = only === undefined || reads.length > 1 ? null : around(only);
  return rows !== null && isIteration(rows);
}

/** `TABLE.iterrows` where it is called by a loop that does not keep the rows. */
function isIteration(attribute: SyntaxNode): boolean {
  const call = /^(?:iterrows|itertuples)$/.test(attribute.child("attribute")?.text ?? "")
    ? around(attribute)
    : null;
  const loop = call?.kind === "call" ? around(call) : null;
  return loop?.kind === "for_statement" && loop.child("right") === call && !keepsRows(loop);
}
