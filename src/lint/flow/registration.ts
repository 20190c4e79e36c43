/** Whether a container grows with the program's text - a registry of its functions and types - or with its work. */

import type { Scope } from "../scopes/scope.js";
import type { Use } from "../scopes/uses.js";
import { bare, mentions, within } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";

const REGISTERING =
  /^_?(?:_*register|add_|subscribe|install|setup|set_up|init|configure|load_?(?:config|plugin|module|setting|all|extension)|declare|define|create_app|make_app|main$|bootstrap|include|mount|patch|monkeypatch|connect_|on_?startup|startup|lifespan|parse_args|import_|populate|discover|collect_?(?:plugin|test)|enable|disable|set_|build_parser|__init_subclass__|__set_name__|__new__|__class_getitem__|__prepare__|__module__|command$|option$|implements|overload|export|deprecat|extend_|use_|bind_|alias|wrap)/i;
const DEFINITIONS =
  /^(?:cls|klass|func|fn|f|fun|function|callback|cb|handler|factory|type_|typ|ctor|constructor|impl|plugin|hook|converter|encoder|decoder|loader|mod|wrapper|wrapped|inner|method|command|cmd|subclass|class_|_class|decorated|rule|codec|finder|backend|provider|extension|strategy|parser|formatter|klazz|test|suite|fixture)$/;
const TYPE_LIKE =
  /__name__|__qualname__|__module__|__class__|\btype\(|^(?:cls|klass|type_?|typ|types|dtype|dtypes|class_?|func|fn|f|module|module_name|mod|owner|model_class|klass_name|class_name|func_name|op|op_name|backend|device|arch|platform|locale|lang|language|encoding|fmt|format|version|attr|attrname|field|field_name|opname|opcode|signature|sig|scheme|tz|category|level|codec|extension|ext|suffix|plugin|loader|charset|unit|annotation|qualname|protocol|feature|flag|option|setting)$|\b(?:dtype|cls|klass|device|signature)\b/;

export function isRegistration(use: Use): boolean {
  const scope = use.scope.functionAround;
  if (scope === null || (scope.kind === "function" && REGISTERING.test(scope.name))) {
    return true;
  }
  if (use.by === "put" || use.by === "put_nowait") {
    return false;
  }
  return isTypeLike(use.key) || isDefinition(use.value) || isDecorator(scope);
}

/** Keys that a program has a fixed number of: its types, its functions, constants. */
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

function isConstant(node: SyntaxNode): boolean {
  return (
    /^(?:integer|float|true|false|none)$/.test(node.kind) ||
    (node.kind === "string" && node.children.length === 0) ||
    /^(?:\w+\.)*[A-Z][A-Z0-9_]+$/.test(node.text)
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
    isConstant(node) ||
    node.kind === "lambda" ||
    (node.kind === "identifier" && DEFINITIONS.test(node.text)) ||
    (node.kind === "call" &&
      /(?:^|\.)(?:import_module|__import__|getattr|partial|weakref|ref|proxy|WeakMethod)$/.test(
        node.child("function")?.text ?? "",
      ))
  );
}

/** A function that returns its own parameter, or a function in it, decorates. */
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

/** Whether an expression depends on what the function was called with. */
export function isFromArguments(node: SyntaxNode | null, scope: Scope | null): boolean {
  if (node === null || scope === null) {
    return false;
  }
  const instance = scope.methodOf === null || scope.isStatic ? 0 : 1;
  return scope.parameters.slice(instance).some(({ name }) => mentions(node, name));
}
