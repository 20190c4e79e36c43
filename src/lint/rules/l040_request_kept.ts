import type { FileFacts } from "../flow/file_facts.js";
import type { Scope } from "../scopes/scope.js";
import { bare, positionals } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { entryOfApplication, isEntryEmptied } from "./application.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const requestKept: Rule = {
  id: "TM-L040",
  name: "request-kept",
  severity: "error",
  finds:
    "A request, its state, a response or a WebSocket that is kept in the application, a module or a container that only grows.",
  why: "A request refers to its body, its session, the user and the application's scope.",
  speed: "Every request stays, with its body.",
  before: `
from fastapi import FastAPI, Request

app = FastAPI()
app.state.recent = []

@app.get("/")
async def index(request: Request):
    app.state.recent.append(request.state)
`,
  after: `
from collections import deque
from fastapi import FastAPI, Request

app = FastAPI()
app.state.recent = deque(maxlen=100)

@app.get("/")
async def index(request: Request):
    app.state.recent.append(str(request.url))
`,
  ignore: "Code that the rule does not see removes the entry at the end of the request.",
  proof: "`tidemark heap PID --to Request` shows the container at the start of the path.",
  *check(file) {
    for (const scope of file.module.functions) {
      const requests = scope.parameters
        .filter((parameter) => isRequest(parameter))
        .map(({ name }) => name);
      if (requests.length > 0 && scope.node.child("body") !== null) {
        yield* keptBy(scope, requests, file);
      }
    }
  },
};

function isRequest({ name, annotation }: { name: string; annotation: string }): boolean {
  return (
    /^(?:request|req|websocket|ws|http_request)$/.test(name) ||
    /\b(?:Request|HttpRequest|WebSocket)\b/.test(annotation)
  );
}

function* keptBy(scope: Scope, requests: readonly string[], file: FileFacts) {
  for (const call of file.module.callsOf(
    "append",
    "add",
    "appendleft",
    "setdefault",
    "insert",
    "put_nowait",
  )) {
    if (call.scope !== scope || call.receiver === null) {
      continue;
    }
    const value = positionals(call.node).find((argument) => refersTo(argument, requests, file));
    if (value !== undefined && onlyCollects(call.receiver, file)) {
      yield {
        node: call.node,
        message: `${code(call.receiver.text)} keeps ${code(value.text.slice(0, 60))} of each request, and nothing removes any`,
      };
    }
  }
  for (const node of file.module.nodesOf("assignment")) {
    const left = node.child("left");
    const right = node.child("right");
    if (
      left === null ||
      right === null ||
      file.module.scopeOf(node) !== scope ||
      !refersTo(right, requests, file)
    ) {
      continue;
    }
    const holder = left.kind === "subscript" ? left.child("value") : null;
    if (holder !== null && onlyCollects(holder, file)) {
      yield {
        node,
        message: `${code(holder.text)} keeps ${code(right.text.slice(0, 60))} of each request, and nothing removes any`,
      };
    }
    const slot = holder === null ? file.slots.of(left) : null;
    const isOfApplication =
      left.kind === "attribute" &&
      /^(?:request\.)?app\.state\.|^app\.|^(?:g|current_app)\.config/.test(left.text);
    if (slot?.kind === "module" || isOfApplication) {
      yield {
        node,
        severity: "warning" as const,
        message: `${code(left.text)} keeps the last request with its body and session`,
      };
    }
  }
}

/** `request`, `request.state`, `(time, request)`, `{"request": request}`; not `request.url`. */
function refersTo(value: SyntaxNode, requests: readonly string[], file: FileFacts): boolean {
  const node = file.names.valueOf(bare(value));
  switch (node.kind) {
    case "identifier":
      return requests.includes(node.text);
    case "attribute":
      return (
        requests.includes(node.child("object")?.text ?? "") &&
        /^(?:state|session|scope|_body|body|data|files|user|environ|META|auth)$/.test(
          node.child("attribute")?.text ?? "",
        )
      );
    case "tuple":
    case "list":
    case "dictionary":
      return node.children.some((child) =>
        refersTo(child.kind === "pair" ? (child.child("value") ?? child) : child, requests, file),
      );
    default:
      return false;
  }
}

/** A container of the module, the class or the application from which nothing is removed. */
function onlyCollects(holder: SyntaxNode, file: FileFacts): boolean {
  const entry = entryOfApplication(holder, file);
  const slot = file.slots.of(holder);
  if (entry !== null && (slot === null || file.containers.of(slot) === null)) {
    return !isEntryEmptied(entry, file);
  }
  if (slot === null) {
    return false;
  }
  const growth = file.containers.of(slot);
  const isEndless =
    growth === null ||
    (!growth.container.isBounded && growth.shrinks.length === 0 && !growth.isChecked);
  const isEmptiedSlot = growth === null && isEmptied(holder.text, file);
  return (
    slot.kind !== "local" &&
    isEndless &&
    !isEmptiedSlot &&
    !file.emptiedElsewhere.has(slot.name) &&
    (growth !== null || slot.kind === "path")
  );
}

function isEmptied(text: string, file: FileFacts): boolean {
  return file.module
    .callsOf("pop", "remove", "discard", "clear", "popleft", "popitem")
    .some(({ receiver }) => receiver?.text === text);
}
