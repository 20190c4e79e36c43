import type { FileFacts } from "../flow/file_facts.js";
import { assignedTo, bare } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code, LONG_LIVED } from "./growing.js";
import type { Rule } from "./rule.js";

export const contextCaptured: Rule = {
  id: "TM-L039",
  name: "context-captured",
  severity: "warning",
  finds:
    "A `contextvars` context that an object or container keeps longer than the request, or a `ContextVar` created in a function.",
  why: "A context keeps the value of every context variable at that time: the request, the user, the database session.",
  speed:
    "The values of one request for each context that is kept; a `ContextVar` created in a function is never freed.",
  before: `
import contextvars

CONTEXTS = {}

async def handle(request):
    CONTEXTS[request.id] = contextvars.copy_context()
`,
  after: `
import contextvars

async def handle(request):
    context = contextvars.copy_context()
    await run_in(context, request)
`,
  ignore: "The context is dropped with the request.",
  proof: "`tidemark heap PID --to Context` shows what keeps it.",
  *check(file) {
    for (const call of file.module.callsOf("copy_context")) {
      const target = assignedTo(call.node);
      const keeper =
        target !== null && isLasting(target, file) ? target.text : storedIn(call.node, file);
      if (keeper !== null) {
        yield {
          node: call.node,
          message: `${code(keeper)} keeps a copy of the context, with the values of all its variables`,
        };
      }
    }
    for (const call of file.module.callsOf("ContextVar")) {
      const isClassBody = call.scope.functionAround === null;
      const full = file.names.resolve(call.callee) ?? "";
      const repeat = file.repeats.of(call.node);
      if (
        !isClassBody &&
        /(?:^|contextvars\.)ContextVar$/.test(full) &&
        ((repeat !== null && repeat.origin !== "loop") ||
          !SETTING_UP.test(call.scope.functionAround?.name ?? ""))
      ) {
        yield {
          node: call.node,
          message: `a ${code("ContextVar")} created in ${code(call.scope.name || "a function")} stays in every context in which it was set: create it at module level`,
        };
      }
    }
  },
};

/** Run once, or for each of a few declarations. */
const SETTING_UP =
  /^(?:__\w+__|_?(?:install|setup|set_up|create|make|build|init|register|configure|declare|define|new|get|patch|main)\w*)$/;

/** An attribute of an object, or an entry of a container that lives on. */
function isLasting(target: SyntaxNode, file: FileFacts): boolean {
  if (target.kind === "attribute") {
    const owner = file.module.scopeOf(target).methodAround?.methodOf;
    return owner != null && LONG_LIVED.test(owner.name);
  }
  const holder = target.kind === "subscript" ? target.child("value") : null;
  const slot = holder === null ? file.slots.of(target) : file.slots.of(bare(holder));
  return (
    slot !== null && slot.kind !== "local" && file.module.scopeOf(target).functionAround !== null
  );
}

function storedIn(call: SyntaxNode, file: FileFacts): string | null {
  let outer = call.parent;
  while (outer?.kind === "tuple" || outer?.kind === "parenthesized_expression") {
    outer = outer.parent;
  }
  const callee = outer?.kind === "argument_list" ? outer.parent?.child("function") : null;
  const object = callee?.child("object");
  const isAdded = /^(?:append|add|put|setdefault|appendleft)$/.test(
    callee?.child("attribute")?.text ?? "",
  );
  const slot = object ? file.slots.of(object) : null;
  return isAdded && object && slot !== null && slot.kind !== "local" ? object.text : null;
}
