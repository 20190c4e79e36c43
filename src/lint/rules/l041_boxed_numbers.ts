import type { FileFacts } from "../flow/file_facts.js";
import { argumentsOf, assignedTo, bare, integerValue, positionals } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const boxedNumbers: Rule = {
  id: "TM-L041",
  name: "boxed-numbers",
  severity: "warning",
  finds:
    "A large list of numbers stored as Python objects: a million or more by a literal size, or one number for each row of a file.",
  why: "A float in a list takes 32 bytes and an int 36; in an array they take 8 or 4.",
  speed: "Once, by four to eight times the size of an array.",
  before: `
import random

class Simulation:
    def __init__(self):
        self.samples = [random.random() for _ in range(5_000_000)]
`,
  after: `
import numpy as np

class Simulation:
    def __init__(self):
        self.samples = np.random.random(5_000_000)
`,
  ignore: "The program changes single numbers far more often than it reads them.",
  proof:
    "`tidemark heap PID` counts `float` and `int` objects; the diagnosis has the rule `boxed-numbers`.",
  *check(file) {
    for (const node of file.module.nodesOf("list_comprehension")) {
      const body = node.child("body");
      const clause = node.children.find(({ kind }) => kind === "for_in_clause");
      const right = clause?.child("right");
      if (
        body !== null &&
        right &&
        isNumber(body) &&
        isKept(node) &&
        (rounds(right, file) >= MANY || isRows(right, file))
      ) {
        yield {
          node,
          message: `this list holds one Python object for each number: use ${code("array.array")} or NumPy`,
        };
      }
    }
    for (const call of file.module.callsOf("list")) {
      const [first] = positionals(call.node);
      if (
        first !== undefined &&
        call.receiver === null &&
        rounds(first, file) >= MANY &&
        isKept(call.node)
      ) {
        yield {
          node: call.node,
          message: `this list holds one Python object for each number: use ${code("range")} itself, ${code("array.array")} or NumPy`,
        };
      }
    }
    for (const call of file.module.callsOf("append")) {
      const [value] = positionals(call.node);
      const loop = file.repeats.loopAround(call.node);
      const right = loop?.kind === "for_statement" ? loop.child("right") : null;
      if (
        value !== undefined &&
        right &&
        isNumber(value) &&
        call.receiver !== null &&
        (rounds(right, file) >= MANY || isRows(right, file))
      ) {
        yield {
          node: call.node,
          message: `${code(call.receiver.text)} holds one Python object for each number: use ${code("array.array")} or NumPy`,
        };
      }
    }
    for (const node of file.module.nodesOf("assignment")) {
      const right = node.child("right");
      const value = right === null ? null : bare(right);
      if (
        value?.kind === "binary_operator" &&
        value.child("operator")?.text === "*" &&
        right !== null
      ) {
        const [list, count] = [value.child("left"), value.child("right")];
        const isNumbers =
          list?.kind === "list" &&
          list.children.length === 1 &&
          /^(?:integer|float|unary_operator)$/.test(list.children[0]?.kind ?? "");
        if (isNumbers && (integerValue(count) ?? 0) >= 10 * MANY) {
          yield {
            node: value,
            message: `this list takes 8 bytes for each entry, and 24 to 36 more for each number that is put in: use ${code("array.array")} or NumPy`,
          };
        }
      }
    }
  },
};

const MANY = 500_000;

/** How many rounds a `range` of literals, or of a constant of the file, has. */
function rounds(iterable: SyntaxNode, file: FileFacts): number {
  if (iterable.kind !== "call" || iterable.child("function")?.text !== "range") {
    return 0;
  }
  const [first, last] = argumentsOf(iterable).map((argument) =>
    integerValue(file.names.valueOf(argument)),
  );
  return last === undefined ? (first ?? 0) : (last ?? 0) - (first ?? 0);
}

/** The rows of a file or of a table. */
function isRows(iterable: SyntaxNode, file: FileFacts): boolean {
  const value = file.names.valueOf(iterable);
  const callee =
    value.kind === "call" ? (file.names.resolve(value.child("function") ?? value) ?? "") : "";
  return (
    /^(?:csv\.(?:reader|DictReader)|open|gzip\.open|pyarrow\.csv\.\w+)$/.test(callee) ||
    /\.(?:itertuples|iterrows)$/.test(value.child("function")?.text ?? "")
  );
}

function isNumber(value: SyntaxNode): boolean {
  const node = bare(value);
  if (node.kind === "integer" || node.kind === "float") {
    return true;
  }
  if (node.kind === "binary_operator") {
    return node.children.some(isNumber);
  }
  const callee = node.kind === "call" ? (node.child("function")?.text ?? "") : "";
  return /^(?:float|int|random\.\w+|math\.\w+|rng\.random|time\.time|time\.perf_counter)$/.test(
    callee,
  );
}

function isKept(node: SyntaxNode): boolean {
  return assignedTo(node) !== null;
}
