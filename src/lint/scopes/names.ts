import { bare } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import type { Module } from "./module.js";
import type { Scope, Write } from "./scope.js";

/** The longest chain of aliases that is followed. */
const LONGEST_CHAIN = 5;

/** Resolves names within one file. */
export class Names {
  readonly #resolved = new Map<SyntaxNode, string | null>();

  constructor(readonly module: Module) {}

  /** The scope that binds a name used in `from`; only its own statements see a class body's names. */
  binderOf(name: string, from: Scope): Scope | null {
    if (from.globals.has(name)) {
      return this.module.root;
    }
    for (let scope: Scope | null = from; scope !== null; scope = scope.parent) {
      const isVisible = scope.kind !== "class" || scope === from;
      if (isVisible && scope.writes.has(name)) {
        return scope;
      }
    }
    return null;
  }

  writesOf(identifier: SyntaxNode): readonly Write[] {
    const scope = this.binderOf(identifier.text, this.module.scopeOf(identifier));
    return scope?.writes.get(identifier.text) ?? [];
  }

  /**
   * The full dotted name of a function or class, through imports and aliases: `F.relu` is "torch.nn.functional.relu".
   * Unbound names are builtins, or come from `import *`, and stay as they are. A definition in the file is ".NAME".
   * The result of a call is "NAME()". null for a value that does not come from an import.
   */
  resolve(node: SyntaxNode, depth = 0): string | null {
    const known = this.#resolved.get(node);
    if (known !== undefined) {
      return known;
    }
    this.#resolved.set(node, null); // circles end here
    const name = depth > LONGEST_CHAIN ? null : this.#resolve(bare(node), depth);
    this.#resolved.set(node, name);
    return name;
  }

  #resolve(node: SyntaxNode, depth: number): string | null {
    if (node.kind === "identifier") {
      return this.#resolveName(node, depth);
    }
    if (node.kind === "attribute") {
      const object = node.child("object");
      const before = object === null ? null : this.resolve(object, depth + 1);
      return before === null ? null : `${before}.${node.child("attribute")?.text ?? ""}`;
    }
    if (node.kind === "call") {
      const callee = node.child("function");
      const name = callee === null ? null : this.resolve(callee, depth + 1);
      return name === null ? null : `${name}()`;
    }
    if (node.kind === "subscript") {
      const value = node.child("value"); // Generic[T]
      return value === null ? null : this.resolve(value, depth + 1);
    }
    return null;
  }

  #resolveName(node: SyntaxNode, depth: number): string | null {
    const writes = this.writesOf(node);
    const [first] = writes;
    if (first === undefined) {
      return node.text;
    }
    const imported = writes.find(({ kind }) => kind === "import");
    if (imported?.imported !== undefined) {
      return imported.imported;
    }
    if (first.kind === "def" || first.kind === "class") {
      return `.${node.text}`;
    }
    if (writes.length === 1 && first.kind === "assign" && first.value !== null) {
      const value = bare(first.value);
      return value.kind === "identifier" || value.kind === "attribute"
        ? this.resolve(value, depth + 1)
        : null;
    }
    return null;
  }

  /** The expression of a name's only assignment, through aliases; otherwise the node itself. */
  valueOf(node: SyntaxNode, depth = 0): SyntaxNode {
    const expression = bare(node);
    if (expression.kind !== "identifier" || depth > LONGEST_CHAIN) {
      return expression;
    }
    const writes = this.writesOf(expression).filter(({ kind }) => kind !== "augment");
    const [only] = writes;
    const isValue = only?.kind === "assign" || only?.kind === "with";
    return writes.length === 1 && isValue && only.value !== null
      ? this.valueOf(only.value, depth + 1)
      : expression;
  }

  /** The full name of the constructor or function that created this value, through the variable that holds it. */
  constructorOf(node: SyntaxNode): string | null {
    const value = this.valueOf(node);
    const callee = value.kind === "call" ? value.child("function") : null;
    return callee === null ? null : this.resolve(callee);
  }

  /** The class of this file that a name refers to. */
  classNamed(node: SyntaxNode): Scope | null {
    return this.#definition(node, "class");
  }

  /** The function of this file that a callee refers to: `f`, `self.f`, `cls.f`, `Class.f`. */
  functionNamed(callee: SyntaxNode): Scope | null {
    const node = bare(callee);
    if (node.kind === "identifier") {
      return this.#definition(node, "def");
    }
    const object = node.kind === "attribute" ? node.child("object") : null;
    const owner = object === null ? null : (this.selfClass(object) ?? this.classOf(object));
    return owner === null ? null : this.methodOf(owner, node.child("attribute")?.text ?? "");
  }

  /** A method of a class, or of its bases in this file. */
  methodOf(owner: Scope, name: string, depth = 0): Scope | null {
    const write = owner.writes.get(name)?.find(({ kind }) => kind === "def");
    if (write?.value) {
      return this.module.scopeOpenedBy(write.value) ?? null;
    }
    for (const base of depth > LONGEST_CHAIN ? [] : this.basesOf(owner)) {
      const method = this.methodOf(base, name, depth + 1);
      if (method !== null) {
        return method;
      }
    }
    return null;
  }

  /** Base classes that are in this file. */
  basesOf(owner: Scope): Scope[] {
    return (owner.node.child("superclasses")?.children ?? []).flatMap((base) => {
      const scope = base.kind === "identifier" ? this.classNamed(base) : null;
      return scope === null || scope === owner ? [] : [scope];
    });
  }

  /** Full names of all base classes, including the bases of base classes in this file. */
  baseNames(owner: Scope, depth = 0): string[] {
    const bases = owner.node.child("superclasses")?.children ?? [];
    const own = bases.flatMap((base) =>
      base.kind === "keyword_argument" ? [] : (this.resolve(base) ?? base.text),
    );
    const above = depth > LONGEST_CHAIN ? [] : this.basesOf(owner);
    return [...own, ...above.flatMap((base) => this.baseNames(base, depth + 1))];
  }

  /** The class behind `self`, `cls`, `type(self)` or `self.__class__`, or the named class. */
  selfClass(node: SyntaxNode): Scope | null {
    const object = bare(node);
    if (object.kind === "identifier") {
      return this.#isInstance(object) ? this.#methodScope(object) : this.classNamed(object);
    }
    const [of] = object.kind === "call" ? (object.child("arguments")?.children ?? []) : [];
    if (of !== undefined && object.child("function")?.text === "type") {
      return this.selfClass(of);
    }
    const inner = object.kind === "attribute" ? object.child("object") : null;
    return inner !== null && object.child("attribute")?.text === "__class__"
      ? this.selfClass(inner)
      : null;
  }

  /** The class of this file that a value is an instance of: by its constructor, or by a parameter's annotation. */
  classOf(node: SyntaxNode): Scope | null {
    const value = this.valueOf(node);
    if (value.kind === "call") {
      const callee = value.child("function");
      return callee === null ? null : this.classNamed(callee);
    }
    if (value.kind !== "identifier") {
      return null;
    }
    const scope = this.binderOf(value.text, this.module.scopeOf(value));
    const annotation = scope?.parameter(value.text)?.annotation.replace(/^["']|["']$/g, "") ?? "";
    const write = /^\w+$/.test(annotation) ? this.module.root.writes.get(annotation)?.[0] : null;
    return write?.kind === "class" && write.value !== null
      ? (this.module.scopeOpenedBy(write.value) ?? null)
      : null;
  }

  #definition(node: SyntaxNode, kind: "def" | "class"): Scope | null {
    const value = this.valueOf(node);
    if (value.kind !== "identifier") {
      return null;
    }
    const write = this.writesOf(value).find((each) => each.kind === kind);
    return write?.value ? (this.module.scopeOpenedBy(write.value) ?? null) : null;
  }

  /** Whether a name is the first parameter of the method around it. */
  #isInstance(identifier: SyntaxNode): boolean {
    const from = this.module.scopeOf(identifier);
    const method = from.methodAround;
    return (
      method !== null &&
      !method.isStatic &&
      method.parameters[0]?.name === identifier.text &&
      this.binderOf(identifier.text, from) === method
    );
  }

  #methodScope(identifier: SyntaxNode): Scope | null {
    return this.module.scopeOf(identifier).methodAround?.methodOf ?? null;
  }
}
