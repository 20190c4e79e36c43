/** Whether a container grows with the program's text - a registry of its functions and types - or with its work. */

import type { Scope } from "../scopes/scope.js";
import type { Use } from "../scopes/uses.js";
import { bare, mentions, within } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";

/** Names of functions that assemble the parts of a program. */
const REGISTERING =
  /^_?(?:_*register|subscribe|install|setup|set_up|init|configure|load_?(?:config|plugin|module|setting|all|extension)|create_app|make_app|main$|bootstrap|monkeypatch|on_?startup|startup|lifespan|parse_args|opt_|import_|build_parser|__init_subclass__|__set_name__|__new__|__class_getitem__|__prepare__|__module__|command$|option$|implements|overload|export|deprecat|alias|wrap)/i;
const DEFINITIONS =
  /^(?:cls|klass|func|fn|f|fun|function|callback|cb|handler|factory|type_|typ|ctor|constructor|impl|plugin|hook|converter|encoder|decoder|loader|mod|wrapper|wrapped|inner|method|command|cmd|subclass|class_|_class|decorated|rule|codec|finder|backend|provider|extension|strategy|parser|formatter|klazz|test|suite|fixture)$/;
const TYPE_LIKE =
  /__name__|__qualname__|__module__|__class__|\btype\(|^(?:cls|klass|type_?|typ|types|dtype|dtypes|class_?|func|fn|f|module|module_name|mod|owner|model_class|klass_name|class_name|func_name|op|op_name|backend|device|arch|platform|locale|lang|language|encoding|fmt|format|version|attr|attrname|field|field_name|opname|opcode|signature|sig|scheme|tz|category|level|codec|extension|ext|suffix|plugin|loader|charset|unit|annotation|qualname|protocol|feature|flag|option|setting)$|\b(?:dtype|cls|klass|device|signature)\b/;

/** `handles`: whether a function handles requests or messages, whatever its name is. */
export function isRegistration(use: Use, handles: (scope: Scope) => boolean): boolean {
  const scope = use.scope.functionAround;
  if (scope === null) {
    return true;
  }
  if (scope.kind === "function" && REGISTERING.test(scope.name) && !handles(scope)) {
    return true;
  }
  if (use.by === "put" || use.by === "put_nowait") {
    return false;
  }
  return isTypeLike(use.key) || isDefinition(use.value) || isDecorator(scope);
}

/** Keys of which a program has a fixed number: its types, its functions, constants. */
export function isTypeLike(key: SyntaxNode | null): boolean {
  if (key === null) {
    return false;
  }
  const node = bare(key);
  return (
    isConstant(node) ||
    TYPE_LIKE.test(node.text) ||
    (node.kind === "tuple" && node.children.every(isTypeLike))
  );
}

export function isConstant(node: SyntaxNode | null): boolean {
  return (
    node !== null &&
    (/^(?:integer|float|true|false|none)$/.test(node.kind) ||
      (node.kind === "string" && node.children.length === 0) ||
      /^(?:\w+\.)*[A-Z][A-Z0-9_]+$/.test(node.text))
  );
}

function isDefinition(value: SyntaxNode | null): boolean {
  if (value === null) {
    return false;
  }
  const node = bare(value);
  if (node.kind === "tuple") {
    return node.children.some(isDefinition);
  }
  return (
    node.kind === "lambda" ||
    (node.kind === "identifier" && DEFINITIONS.test(node.text)) ||
    (node.kind === "call" &&
      /(?:^|\.)(?:import_module|__import__|getattr|partial|weakref|ref|proxy|WeakMethod)$/.test(
        node.child("function")?.text ?? "",
      ))
  );
}

/** A function that returns its own parameter or an inner function is a decorator. */
function isDecorator(scope: Scope): boolean {
  if (scope.kind === "lambda") {
    return false;
  }
  const made = new Set(
    scope.inner
      .filter(({ kind }) => kind === "function" || kind === "class")
      .map(({ name }) => name),
  );
  const given = scope.parameters[scope.methodOf === null ? 0 : 1]?.name;
  for (const statement of within(scope.node.child("body") ?? scope.node, "return_statement", {
    here: true,
  })) {
    const [value] = statement.children;
    if (
      value?.kind === "identifier" &&
      (made.has(value.text) || (value.text === given && DEFINITIONS.test(value.text)))
    ) {
      return true;
    }
  }
  return false;
}

/** Longest chain of local names that is followed. */
const LONGEST_CHAIN = 3;

/** Whether an expression depends on the function's arguments, directly or through local names. */
export function isFromArguments(
  node: SyntaxNode | null,
  scope: Scope | null,
  /** 0: only the parameters themselves. */
  depth = LONGEST_CHAIN,
): boolean {
  if (node === null || scope === null) {
    return false;
  }
  const instance = scope.methodOf === null || scope.isStatic ? 0 : 1;
  if (scope.parameters.slice(instance).some(({ name }) => mentions(node, name))) {
    return true;
  }
  return (
    depth > 0 &&
    [...within(node, "identifier")].some((name) =>
      (scope.writes.get(name.text) ?? []).some(
        ({ kind, value }) =>
          /^(?:assign|for|unpack|with)$/.test(kind) && isFromArguments(value, scope, depth - 1),
      ),
    )
  );
}

/** A key whose number is fixed by the program's text: a name from a literal or from the settings. */
export function isFixedKey(key: SyntaxNode | null, scope: Scope): boolean {
  if (key === null) {
    return false;
  }
  const node = bare(key);
  if (node.kind === "identifier") {
    const writes = scope.functionAround?.writes.get(node.text) ?? [];
    return (
      writes.length > 0 &&
      writes.every(({ kind, value }) =>
        kind === "for"
          ? value !== null && isLiteral(bare(value))
          : kind === "assign" && value?.kind === "string" && isFixedKey(value, scope),
      )
    );
  }
  const parts = node.kind === "string" ? [...within(node, "interpolation")] : [];
  return parts.length > 0
    ? parts.every(({ children }) =>
        /^self\.\w*(?:config|settings|options|prefix|namespace)/.test(children[0]?.text ?? ""),
      )
    : isConstant(node);
}

/** A sequence of constants, or a name that looks like one. */
function isLiteral(node: SyntaxNode): boolean {
  return /^(?:tuple|list|set)$/.test(node.kind)
    ? node.children.every((child) => isConstant(bare(child)))
    : isConstant(node);
}

/** `assert key in NAMES`, `if key not in NAMES: raise ...`: the keys are those of another collection. */
export function isAdmitted({ key, at, scope }: Use): boolean {
  const body = scope.functionAround?.node.child("body");
  if (key === null || !body) {
    return false;
  }
  return [...within(body, "comparison_operator", { here: true })].some((comparison) => {
    const [left, right] = comparison.children.filter(({ kind }) => !/^(?:not )?in$/.test(kind));
    if (comparison.start > at.start || left?.text !== key.text || right === undefined) {
      return false;
    }
    const statement = comparison.parent;
    if (at.text.includes(right.text)) {
      return false; // a lookup in the container itself
    }
    if (statement?.kind === "assert_statement") {
      return !/\bnot in\b/.test(comparison.text);
    }
    return (
      statement?.kind === "if_statement" &&
      /\bnot in\b/.test(comparison.text) &&
      /^(?:raise|return)_statement$/.test(
        statement.child("consequence")?.children.at(-1)?.kind ?? "",
      )
    );
  });
}
