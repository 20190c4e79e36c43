/** Small queries about expressions. */
import type { SyntaxNode } from "./tree.js";

/** Without parentheses, `await`, and the annotations of a type checker (`cast(T, x)` is a call). */
export function bare(node: SyntaxNode): SyntaxNode {
  let inner = node;
  while (inner.kind === "parenthesized_expression" || inner.kind === "await") {
    const [only] = inner.children;
    if (only === undefined || inner.children.length > 1) {
      break;
    }
    inner = only;
  }
  return inner;
}

/** The node around it that is not a parenthesis. */
export function around(node: SyntaxNode): SyntaxNode | null {
  let outer = node.parent;
  while (outer !== null && outer.kind === "parenthesized_expression") {
    outer = outer.parent;
  }
  return outer;
}

export function isInside(node: SyntaxNode, outer: SyntaxNode): boolean {
  return node.start >= outer.start && node.end <= outer.end;
}

/** Every node below this one, itself included, for which `matches` holds; functions within are left out if `here`. */
export function* within(
  node: SyntaxNode,
  kind: string,
  { here = false }: { here?: boolean } = {},
): Generator<SyntaxNode> {
  if (node.kind === kind) {
    yield node;
  }
  for (const child of node.children) {
    if (!(here && opensScope(child))) {
      yield* within(child, kind, { here });
    }
  }
}

export function opensScope(node: SyntaxNode): boolean {
  return (
    node.kind === "function_definition" ||
    node.kind === "lambda" ||
    node.kind === "class_definition"
  );
}

/** Whether this name is read anywhere below. */
export function mentions(node: SyntaxNode, name: string): boolean {
  if (node.kind === "identifier") {
    return node.text === name && node.field !== "attribute";
  }
  return node.children.some((child) => mentions(child, name));
}

/** "self.cache.items" of names joined by dots; null for any other expression. */
export function dottedText(node: SyntaxNode): string | null {
  if (node.kind === "identifier") {
    return node.text;
  }
  if (node.kind !== "attribute") {
    return null;
  }
  const object = node.child("object");
  const before = object === null ? null : dottedText(bare(object));
  return before === null ? null : `${before}.${node.child("attribute")?.text ?? ""}`;
}

/** Positional arguments of a call. */
export function positionals(call: SyntaxNode): SyntaxNode[] {
  const list = call.child("arguments");
  if (list === null) {
    return [];
  }
  if (list.kind !== "argument_list") {
    return [list]; // f(x for x in y)
  }
  return list.children.filter(
    ({ kind }) => kind !== "keyword_argument" && kind !== "dictionary_splat",
  );
}

export function keyword(call: SyntaxNode, name: string): SyntaxNode | null {
  for (const node of call.child("arguments")?.children ?? []) {
    if (node.kind === "keyword_argument" && node.child("name")?.text === name) {
      return node.child("value");
    }
  }
  return null;
}

/** Positional and keyword values. */
export function argumentsOf(call: SyntaxNode): SyntaxNode[] {
  return (call.child("arguments")?.children ?? []).map((node) =>
    node.kind === "keyword_argument" ? (node.child("value") ?? node) : node,
  );
}

/** The text of a plain string literal; null for anything else. */
export function stringValue(node: SyntaxNode | null): string | null {
  if (node?.kind !== "string") {
    return null;
  }
  const [, quoted] = /^[bru]*("""|'''|"|')([\s\S]*)\1$/i.exec(node.text)?.slice(1) ?? [];
  return quoted ?? null;
}

/** The value of an integer literal; null for anything else. */
export function integerValue(node: SyntaxNode | null): number | null {
  const bareNode = node === null ? null : bare(node);
  if (bareNode?.kind === "integer") {
    return Number(bareNode.text.replaceAll("_", ""));
  }
  if (bareNode?.kind === "binary_operator" && bareNode.child("operator")?.text === "**") {
    const left = integerValue(bareNode.child("left"));
    const right = integerValue(bareNode.child("right"));
    return left === null || right === null ? null : left ** right;
  }
  if (bareNode?.kind === "float") {
    return Number(bareNode.text.replaceAll("_", ""));
  }
  return null;
}

/** The statement that an expression is part of. */
export function statementOf(node: SyntaxNode): SyntaxNode {
  let statement = node;
  while (
    statement.parent !== null &&
    statement.parent.kind !== "block" &&
    statement.parent.kind !== "module"
  ) {
    statement = statement.parent;
  }
  return statement;
}

/** Whether the value of an expression is discarded. */
export function isDropped(node: SyntaxNode): boolean {
  const outer = around(node);
  if (outer?.kind === "await") {
    return isDropped(outer);
  }
  return outer?.kind === "expression_statement";
}

/** The identifier or attribute that an expression is assigned to by `x = ...` or `x := ...`; null otherwise. */
export function assignedTo(node: SyntaxNode): SyntaxNode | null {
  const outer = around(node);
  if (outer?.kind === "await") {
    return assignedTo(outer);
  }
  if (outer?.kind === "named_expression") {
    return outer.child("name");
  }
  return outer?.kind === "assignment" && outer.child("left") !== node ? outer.child("left") : null;
}
