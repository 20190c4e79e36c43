/** The result of one walk over a file: its scopes, their bindings, and its nodes by kind and name. */
import { bare } from "../syntax/expressions.js";
import type { SyntaxNode, SyntaxTree } from "../syntax/tree.js";
import { Scope, type Write, type WriteKind } from "./scope.js";

export interface Call {
  readonly node: SyntaxNode;
  /** The last name of a callee: "append" of `self.items.append(x)`. */
  readonly name: string;
  /** The object that a method is called on. */
  readonly receiver: SyntaxNode | null;
  readonly callee: SyntaxNode;
  readonly scope: Scope;
}

const LISTED = new Set([
  "for_statement",
  "while_statement",
  "except_clause",
  "augmented_assignment",
  "assignment",
  "delete_statement",
  "with_statement",
  "subscript",
  "comparison_operator",
  "list_comprehension",
  "return_statement",
  "yield",
]);

export class Module {
  readonly root: Scope;
  readonly functions: Scope[] = [];
  readonly classes: Scope[] = [];
  readonly #calls = new Map<string, Call[]>();
  readonly #identifiers = new Map<string, SyntaxNode[]>();
  readonly #attributes = new Map<string, SyntaxNode[]>();
  readonly #kinds = new Map<string, SyntaxNode[]>();
  readonly #scopes = new Map<SyntaxNode, Scope>();
  readonly #unnamedCalls: { node: SyntaxNode; callee: SyntaxNode; scope: Scope }[] = [];
  /** Names that stand for another one: `from functools import lru_cache as memo`, `push = items.append`. */
  readonly #aliases = new Map<string, { name: string; value: SyntaxNode | null }>();

  constructor(
    readonly tree: SyntaxTree,
    readonly path: string,
  ) {
    this.root = new Scope("module", path, tree.root, null);
    this.#scopes.set(tree.root, this.root);
    this.#children(tree.root, this.root);
    this.#indexCalls();
  }

  callsOf(...names: string[]): Call[] {
    const [only] = names;
    return names.length === 1 && only !== undefined
      ? (this.#calls.get(only) ?? [])
      : names.flatMap((name) => this.#calls.get(name) ?? []);
  }

  /** The last names of all callees. */
  get calledNames(): Iterable<string> {
    return this.#calls.keys();
  }

  identifiersNamed(name: string): readonly SyntaxNode[] {
    return this.#identifiers.get(name) ?? [];
  }

  /** Attribute expressions `x.NAME`. */
  attributesNamed(name: string): readonly SyntaxNode[] {
    return this.#attributes.get(name) ?? [];
  }

  /** Nodes of the kinds in `LISTED`. */
  nodesOf(kind: string): readonly SyntaxNode[] {
    return this.#kinds.get(kind) ?? [];
  }

  /** The scope that a definition opens. */
  scopeOpenedBy(node: SyntaxNode): Scope | undefined {
    return this.#scopes.get(node);
  }

  /** The scope that an expression is evaluated in. */
  scopeOf(node: SyntaxNode): Scope {
    let child = node;
    let outer = node.parent;
    while (outer !== null) {
      const scope = this.#scopes.get(outer);
      // Decorators, defaults of parameters and base classes are evaluated in the scope outside.
      const isBody = child.field === "body" || outer.parent === null || child.field === "name";
      const isParameter = child.field === "parameters" && !isDefault(node, child);
      if (scope !== undefined && (isBody || isParameter)) {
        return scope;
      }
      child = outer;
      outer = outer.parent;
    }
    return this.root;
  }

  #children(node: SyntaxNode, scope: Scope): void {
    for (const child of node.children) {
      this.#visit(child, scope);
    }
  }

  #visit(node: SyntaxNode, scope: Scope): void {
    if (LISTED.has(node.kind)) {
      add(this.#kinds, node.kind, node);
    }
    switch (node.kind) {
      case "identifier":
        if (node.field !== "attribute" && node.parent?.kind !== "keyword_argument") {
          add(this.#identifiers, node.text, node);
        } else if (node.field === "value") {
          add(this.#identifiers, node.text, node); // the value of f(name=value)
        }
        return;
      case "attribute":
        add(this.#attributes, node.child("attribute")?.text ?? "", node);
        break;
      case "call": {
        const callee = node.child("function");
        if (callee !== null) {
          this.#unnamedCalls.push({ node, callee: bare(callee), scope });
        }
        break;
      }
      case "function_definition":
      case "lambda":
        this.#function(node, scope, []);
        return;
      case "class_definition":
        this.#class(node, scope, []);
        return;
      case "decorated_definition":
        this.#decorated(node, scope);
        return;
      case "import_statement":
      case "import_from_statement":
        this.#import(node, scope);
        return;
      case "global_statement":
      case "nonlocal_statement": {
        const names = node.kind === "global_statement" ? scope.globals : scope.nonlocals;
        for (const child of node.children) {
          names.add(child.text);
        }
        return;
      }
      case "yield":
        scope.isGenerator = true;
        break;
      default:
        this.#bindings(node, scope);
    }
    this.#children(node, scope);
  }

  /** The bindings of a statement. */
  #bindings(node: SyntaxNode, scope: Scope): void {
    switch (node.kind) {
      case "assignment":
        this.#assign(node.child("left"), node.child("right"), scope);
        return;
      case "named_expression":
        this.#bindTo("assign", node.child("name"), node.child("value"), scope);
        return;
      case "augmented_assignment":
        this.#bindTo("augment", node.child("left"), node.child("right"), scope);
        return;
      case "for_statement":
      case "for_in_clause":
        this.#bindPattern("for", node.child("left"), node.child("right"), scope);
        return;
      case "as_pattern": {
        const [value, target] = node.children;
        const kind = node.parent?.kind === "except_clause" ? "except" : "with";
        const name = target?.kind === "as_pattern_target" ? target.children[0] : target;
        this.#bindPattern(kind, name ?? null, value ?? null, scope);
        return;
      }
      case "except_clause": {
        const alias = node.child("alias");
        if (alias !== null) {
          this.#bindPattern("except", alias, node.child("value"), scope);
        }
      }
    }
  }

  #assign(left: SyntaxNode | null, right: SyntaxNode | null, scope: Scope): void {
    if (left === null) {
      return;
    }
    const isPattern = left.kind === "pattern_list" || left.kind === "tuple_pattern";
    if (!isPattern) {
      // `a = b = value` nests: the value of a is that of b.
      const value = right?.kind === "assignment" ? innermostValue(right) : right;
      this.#bindTo("assign", left, value, scope);
      return;
    }
    const isList = right?.kind === "expression_list" || right?.kind === "tuple";
    const values = isList ? right.children : [];
    left.children.forEach((target, at) => {
      const value = values.length === left.children.length ? values[at] : undefined;
      if (value !== undefined) {
        this.#assign(target, value, scope);
      } else {
        this.#bindPattern("unpack", target, right, scope);
      }
    });
  }

  #bindPattern(
    kind: WriteKind,
    target: SyntaxNode | null,
    value: SyntaxNode | null,
    scope: Scope,
  ): void {
    if (target === null) {
      return;
    }
    if (/pattern|expression_list|^tuple$|^list$/.test(target.kind)) {
      for (const child of target.children) {
        this.#bindPattern(kind === "for" ? "for" : "unpack", child, value, scope);
      }
    } else {
      this.#bindTo(kind, target, value, scope);
    }
  }

  #bindTo(kind: WriteKind, target: SyntaxNode | null, value: SyntaxNode | null, from: Scope): void {
    if (target?.kind === "identifier") {
      this.#bind(target.text, { kind, target, value, from });
      if (kind === "assign" && value?.kind === "attribute") {
        const name = value.child("attribute")?.text ?? "";
        this.#aliases.set(target.text, { name, value });
      }
    }
  }

  #bind(name: string, write: Write): void {
    let scope = write.from;
    if (scope.globals.has(name)) {
      scope = this.root;
    } else if (scope.nonlocals.has(name)) {
      for (let outer = scope.parent; outer !== null; outer = outer.parent) {
        if (outer.kind !== "class" && outer.writes.has(name)) {
          scope = outer;
          break;
        }
      }
    }
    scope.bind(name, write);
  }

  #decorated(node: SyntaxNode, scope: Scope): void {
    const decorators: SyntaxNode[] = [];
    for (const child of node.children) {
      if (child.kind === "decorator") {
        const [expression] = child.children;
        if (expression !== undefined) {
          decorators.push(expression);
          this.#visit(expression, scope);
        }
      } else if (child.kind === "function_definition") {
        this.#function(child, scope, decorators);
      } else if (child.kind === "class_definition") {
        this.#class(child, scope, decorators);
      } else {
        this.#visit(child, scope);
      }
    }
  }

  #function(node: SyntaxNode, parent: Scope, decorators: readonly SyntaxNode[]): void {
    const isLambda = node.kind === "lambda";
    const name = node.child("name");
    const scope = new Scope(isLambda ? "lambda" : "function", name?.text ?? "", node, parent);
    this.#scopes.set(node, scope);
    this.functions.push(scope);
    scope.decorators.push(...decorators);
    scope.isAsync = node.children.some(({ kind }) => kind === "async");
    if (name !== null) {
      this.#bind(name.text, { kind: "def", target: name, value: node, from: parent });
    }
    for (const child of node.child("parameters")?.children ?? []) {
      this.#parameter(child, scope, parent);
    }
    const body = node.child("body");
    if (body !== null) {
      this.#visit(body, scope);
    }
  }

  #parameter(node: SyntaxNode, scope: Scope, parent: Scope): void {
    const named = node.child("name") ?? node.children[0] ?? node;
    const target = named.kind === "identifier" ? named : (named.children[0] ?? named);
    if (target.kind !== "identifier") {
      return;
    }
    const fallback = node.child("value");
    if (fallback !== null) {
      this.#visit(fallback, parent);
    }
    const annotation = node.child("type")?.text ?? "";
    scope.parameters.push({ name: target.text, node, annotation, fallback });
    scope.bind(target.text, { kind: "param", target, value: fallback, from: scope });
  }

  #class(node: SyntaxNode, parent: Scope, decorators: readonly SyntaxNode[]): void {
    const name = node.child("name");
    const scope = new Scope("class", name?.text ?? "", node, parent);
    this.#scopes.set(node, scope);
    this.classes.push(scope);
    scope.decorators.push(...decorators);
    if (name !== null) {
      this.#bind(name.text, { kind: "class", target: name, value: node, from: parent });
    }
    const bases = node.child("superclasses");
    if (bases !== null) {
      this.#children(bases, parent);
    }
    const body = node.child("body");
    if (body !== null) {
      this.#visit(body, scope);
    }
  }

  #import(node: SyntaxNode, scope: Scope): void {
    const from = node.child("module_name")?.text;
    for (const item of node.childrenOf("name")) {
      const isAliased = item.kind === "aliased_import";
      const full = (isAliased ? item.child("name") : item)?.text ?? "";
      const alias = isAliased ? item.child("alias") : null;
      // `import a.b` binds a.
      const name = alias?.text ?? (from === undefined ? (full.split(".")[0] ?? full) : full);
      const whole = from === undefined ? (alias === null ? name : full) : `${from}.${full}`;
      this.#bind(name, { kind: "import", target: item, value: null, from: scope, imported: whole });
      const last = whole.slice(whole.lastIndexOf(".") + 1);
      if (alias !== null && last !== name) {
        this.#aliases.set(name, { name: last, value: null });
      }
    }
  }

  #indexCalls(): void {
    for (const { node, callee, scope } of this.#unnamedCalls) {
      if (callee.kind === "attribute") {
        const name = callee.child("attribute")?.text ?? "";
        const object = callee.child("object");
        const receiver = object === null ? null : bare(object);
        add(this.#calls, name, { node, name, receiver, callee, scope });
      } else if (callee.kind === "identifier") {
        const alias = this.#aliases.get(callee.text);
        const name = callee.text;
        add(this.#calls, name, { node, name, receiver: null, callee, scope });
        if (alias !== undefined && alias.name !== name) {
          const object = alias.value?.child("object") ?? null;
          const receiver = object === null ? null : bare(object);
          add(this.#calls, alias.name, { node, name: alias.name, receiver, callee, scope });
        }
      }
    }
  }
}

function innermostValue(node: SyntaxNode): SyntaxNode | null {
  const right = node.child("right");
  return right?.kind === "assignment" ? innermostValue(right) : right;
}

/** Whether the node is in the default value of a parameter. */
function isDefault(node: SyntaxNode, parameters: SyntaxNode): boolean {
  for (let inner: SyntaxNode | null = node; inner !== null && inner !== parameters; ) {
    if (inner.field === "value") {
      return true;
    }
    inner = inner.parent;
  }
  return false;
}

function add<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const list = map.get(key);
  if (list === undefined) {
    map.set(key, [value]);
  } else {
    list.push(value);
  }
}
