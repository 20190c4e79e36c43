import type { FileFacts } from "../flow/file_facts.js";
import { bare, positionals } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code, onlyGrows } from "./growing.js";
import type { Rule } from "./rule.js";

export const generatorKept: Rule = {
  id: "TM-L021",
  name: "generator-kept",
  severity: "error",
  finds: "A generator or coroutine stored in a container that only grows.",
  why: "A suspended generator keeps its frame, with all local variables, until it is closed.",
  speed: "One frame with its variables for each call.",
  before: `
STREAMS = {}

def rows(path):
    data = load(path)
    for row in data:
        yield row

def open_stream(key, path):
    STREAMS[key] = rows(path)
`,
  after: `
STREAMS = {}

def rows(path):
    data = load(path)
    for row in data:
        yield row

def open_stream(key, path):
    STREAMS[key] = rows(path)

def close_stream(key):
    STREAMS.pop(key).close()
`,
  ignore: "All generators run to their end, and the container is dropped with them.",
  proof: "`tidemark heap PID` counts `generator` objects; `--to generator` shows the container.",
  *check(file) {
    for (const owner of [file.module.root, ...file.module.classes]) {
      const names = new Set([...owner.writes.keys(), ...file.slots.attributesOf(owner)]);
      for (const name of names) {
        const growth = file.containers.of(file.slots.slot(owner, name));
        if (
          growth === null ||
          growth.container.kind === "queue" ||
          !onlyGrows(growth) ||
          file.emptiedElsewhere.has(name)
        ) {
          continue;
        }
        const use = growth.grows.find(
          ({ value, scope, by }) =>
            !/^(?:extend|update|extendleft|[+|]=)$/.test(by) &&
            value !== null &&
            scope.functionAround !== null &&
            isGenerator(value, file),
        );
        if (use !== undefined) {
          yield {
            node: use.at,
            message: `${code(name)} keeps each suspended generator with the variables of its frame, and nothing removes any`,
          };
        }
      }
    }
  },
};

function isGenerator(value: SyntaxNode, file: FileFacts): boolean {
  const node = file.names.valueOf(bare(value));
  if (node.kind === "generator_expression") {
    return true;
  }
  if (node.kind === "tuple") {
    return node.children.some((child) => isGenerator(child, file));
  }
  const callee = node.kind === "call" ? node.child("function") : null;
  if (callee === null) {
    return false;
  }
  const called = file.names.functionNamed(callee);
  if (called !== null) {
    return called.isGenerator;
  }
  const [first] = positionals(node);
  return /^(?:iter|aiter)$/.test(callee.text) && first !== undefined && isGenerator(first, file);
}
