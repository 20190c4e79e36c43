import type { FileFacts } from "../flow/file_facts.js";
import { bare, isInside, mentions } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const exceptionKept: Rule = {
  id: "TM-L020",
  name: "exception-kept",
  severity: "error",
  finds:
    "An exception, a traceback or `sys.exc_info()` kept in a container that only grows, or in a variable of the module.",
  why: "An exception refers to its traceback, and the traceback to every frame with all its local variables.",
  speed: "The local variables of a whole stack for each exception.",
  before: `
FAILURES = []

def handle(job):
    try:
        job.run()
    except Exception as error:
        FAILURES.append(error)
`,
  after: `
import traceback
from collections import deque

FAILURES = deque(maxlen=100)

def handle(job):
    try:
        job.run()
    except Exception:
        FAILURES.append(traceback.format_exc())
`,
  ignore: "Code that the rule does not see empties the list, or raises it as an exception group.",
  proof: "`tidemark heap PID --to traceback` shows the container and the frames.",
  *check(file) {
    for (const clause of file.module.nodesOf("except_clause")) {
      const name = caughtName(clause, file);
      yield* keptIn(clause, name ?? "", file);
    }
    for (const call of file.module.callsOf("exc_info")) {
      const outer = call.node.parent;
      const target = outer?.kind === "assignment" ? outer.child("left") : null;
      const slot = target === null || target === undefined ? null : file.slots.of(target);
      if (slot?.kind === "module" && call.scope.functionAround !== null && outer !== null) {
        yield {
          node: outer,
          severity: "warning" as const,
          message: `${code(slot.name)} of this module keeps a traceback with all its frames`,
        };
      }
    }
  },
};

function caughtName(clause: SyntaxNode, file: FileFacts): string | null {
  const scope = file.module.scopeOf(clause);
  for (const [name, writes] of scope.writes) {
    if (writes.some(({ kind, target }) => kind === "except" && isInside(target, clause))) {
      return name;
    }
  }
  return null;
}

function* keptIn(clause: SyntaxNode, name: string, file: FileFacts) {
  for (const call of file.module.callsOf(
    "append",
    "add",
    "appendleft",
    "insert",
    "put",
    "put_nowait",
    "setdefault",
  )) {
    if (!isInside(call.node, clause) || call.receiver === null) {
      continue;
    }
    const value = (call.node.child("arguments")?.children ?? []).find((argument) =>
      keeps(argument, name),
    );
    if (value !== undefined && isLasting(call.receiver, call.node, file)) {
      yield {
        node: call.node,
        message: `${code(call.receiver.text)} keeps each exception with its traceback and all local variables of its frames, and nothing removes any`,
      };
    }
  }
  for (const node of file.module.nodesOf("assignment")) {
    const left = node.child("left");
    const right = node.child("right");
    if (!isInside(node, clause) || left === null || right === null || !keeps(right, name)) {
      continue;
    }
    if (left.kind === "subscript") {
      const holder = left.child("value");
      if (holder !== null && isLasting(holder, node, file)) {
        yield {
          node,
          message: `${code(holder.text)} keeps each exception with its traceback and all local variables of its frames, and nothing removes any`,
        };
      }
    }
    const slot = file.slots.of(left);
    const isGlobal = slot?.kind === "module" && file.module.scopeOf(node).functionAround !== null;
    if (isGlobal && !isCleared(left, node, file)) {
      yield {
        node,
        severity: "warning" as const,
        message: `${code(left.text)} of this module keeps the last exception with its traceback and all local variables of its frames`,
      };
    }
  }
}

/** `error`, `(job, error)`, `error.__traceback__`, `{"error": error}`; not `str(error)`. */
function keeps(value: SyntaxNode, name: string): boolean {
  const node = bare(value);
  switch (node.kind) {
    case "identifier":
      return node.text === name;
    case "attribute":
      return node.text === `${name}.__traceback__`;
    case "tuple":
    case "list":
    case "dictionary":
    case "expression_list":
      return node.children.some((child) => keeps(child, name));
    case "pair":
    case "keyword_argument": {
      const inner = node.child("value");
      return inner !== null && keeps(inner, name);
    }
    case "call":
      return (
        /(?:^|\.)exc_info$/.test(node.child("function")?.text ?? "") ||
        (/^[A-Z]\w*(?:Error|Failure|Result|Record|Event|Entry|Report|Info)$/.test(
          node.child("function")?.text ?? "",
        ) &&
          (node.child("arguments")?.children ?? []).some(
            (child) => mentions(child, name) && keeps(child, name),
          ))
      );
    default:
      return false;
  }
}

/** A container of a module or class that only grows, or one of an object that serves requests. */
function isLasting(holder: SyntaxNode, at: SyntaxNode, file: FileFacts): boolean {
  const slot = file.slots.of(holder);
  const growth = slot === null ? null : file.containers.of(slot);
  if (
    slot === null ||
    growth === null ||
    growth.container.kind === "queue" ||
    growth.container.isBounded ||
    growth.shrinks.length > 0 ||
    growth.isChecked
  ) {
    return false;
  }
  if (slot.kind === "module") {
    return file.module.scopeOf(at).functionAround !== null && !file.emptiedElsewhere.has(slot.name);
  }
  if (slot.kind !== "class") {
    return false;
  }
  const isShared = file.slots.writesOf(slot).every(({ target }) => target.kind === "identifier");
  const isRead = growth.gives.length > 0;
  return isShared || (!isRead && file.repeats.of(at) !== null && !isRaised(slot.name, file));
}

/** The list is raised or read when the work is done. */
function isRaised(name: string, file: FileFacts): boolean {
  return file.module.attributesNamed(name).some((node) => {
    const outer = node.parent;
    return (
      outer?.kind === "if_statement" ||
      outer?.kind === "raise_statement" ||
      outer?.kind === "subscript"
    );
  });
}

function isCleared(target: SyntaxNode, at: SyntaxNode, file: FileFacts): boolean {
  const slot = file.slots.of(target);
  return (
    slot !== null &&
    file.slots
      .writesOf(slot)
      .some(
        ({ value, target: other }) =>
          other.parent !== at &&
          value?.kind === "none" &&
          file.module.scopeOf(other).functionAround !== null,
      )
  );
}
