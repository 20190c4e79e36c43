import { bare, mentions } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code, onlyGrows } from "./growing.js";
import type { Rule } from "./rule.js";

export const closureOverSelf: Rule = {
  id: "TM-L019",
  name: "self-in-registry",
  severity: "error",
  finds:
    "Each object puts one of its methods, a lambda that uses `self`, or `self` itself into a container of the module or the class, and nothing removes it.",
  why: "The container keeps the callable, and the callable keeps the object, which is never freed.",
  speed: "Every instance that is created stays.",
  before: `
LISTENERS = []

class Widget:
    def __init__(self, data):
        self.data = data
        LISTENERS.append(lambda event: self.update(event))
`,
  after: `
import weakref

LISTENERS = weakref.WeakSet()

class Widget:
    def __init__(self, data):
        self.data = data
        LISTENERS.add(self)
`,
  ignore: "There are only a few instances, and they live as long as the program.",
  proof:
    "`tidemark heap PID --to Widget` shows the path `module > list > function > closure > Widget`.",
  *check(file) {
    for (const owner of [file.module.root, ...file.module.classes]) {
      for (const growth of file.containers.all(owner)) {
        const isShared = file.slots
          .writesOf(growth.slot)
          .every(({ target }) => target.kind === "identifier");
        if (!onlyGrows(growth) || !isShared || file.emptiedElsewhere.has(growth.slot.name)) {
          continue;
        }
        const use = growth.grows.find(({ value, key, scope }) => {
          const method = scope.methodAround;
          const self = method?.parameters[0]?.name;
          const isInstance =
            method !== null &&
            !method.isStatic &&
            !/^(?:cls|mcs|mcls|meta)$/.test(self ?? "cls") &&
            method?.name !== "__init_subclass__";
          return isInstance && value !== null && !isByName(key) && refersTo(value, self ?? "self");
        });
        if (use !== undefined) {
          yield {
            node: use.at,
            message: `${code(growth.slot.name)} keeps each ${code(use.scope.methodAround?.methodOf?.name ?? "object")} through ${code((use.value?.text ?? "").slice(0, 60))}, and nothing removes any`,
          };
        }
      }
    }
  },
};

/** `templates[name] = self`: a program has as many as names in its text. */
function isByName(key: SyntaxNode | null): boolean {
  return (
    key !== null &&
    (/(?:^|[._])(?:name|kind|type|key|label|slug|alias)$/.test(key.text) || key.kind === "string")
  );
}

/** `self`, `self.method`, or a lambda that uses `self`. */
function refersTo(value: SyntaxNode, self: string): boolean {
  const node = bare(value);
  if (node.kind === "identifier") {
    return node.text === self;
  }
  if (node.kind === "lambda") {
    return mentions(node.child("body") ?? node, self);
  }
  if (node.kind === "tuple") {
    return node.children.some((child) => refersTo(child, self));
  }
  if (node.kind === "call") {
    const isPartial = /(?:^|\.)partial(?:method)?$/.test(node.child("function")?.text ?? "");
    return (
      isPartial && (node.child("arguments")?.children ?? []).some((child) => refersTo(child, self))
    );
  }
  const isAttribute = node.kind === "attribute" && node.child("object")?.text === self;
  return (
    isAttribute &&
    /^_?(?:on|handle|update|notify|call|refresh|callback|receive|close|process|stop|tick|run|listen|invalidate|shutdown|render|cleanup|flush|reload|emit|react|observe|dispatch|reset|execute|send)/.test(
      node.child("attribute")?.text ?? "",
    )
  );
}
