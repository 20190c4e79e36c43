import type { SyntaxNode } from "../syntax/tree.js";

/** How a name gets its value. */
export type WriteKind =
  | "assign"
  | "augment"
  | "for"
  | "with"
  | "except"
  | "import"
  | "def"
  | "class"
  | "param"
  | "unpack";

/** One place that binds a name. */
export interface Write {
  readonly kind: WriteKind;
  /** The bound identifier or attribute. */
  readonly target: SyntaxNode;
  /**
   * The assigned expression; the iterable of a loop, the context of a `with`, the default of a parameter, the
   * definition.
   */
  readonly value: SyntaxNode | null;
  /** The scope of the statement; with `global`, this is not the scope that owns the name. */
  readonly from: Scope;
  /** For imports: the dotted name of the imported module or object. */
  readonly imported?: string;
}

export interface Parameter {
  readonly name: string;
  readonly node: SyntaxNode;
  readonly annotation: string;
  readonly fallback: SyntaxNode | null;
}

export type ScopeKind = "module" | "class" | "function" | "lambda";

/** A module, class, function or lambda with the names that it binds. Comprehensions belong to the scope around them. */
export class Scope {
  readonly writes = new Map<string, Write[]>();
  readonly globals = new Set<string>();
  readonly nonlocals = new Set<string>();
  readonly parameters: Parameter[] = [];
  /** The expressions behind `@`. */
  readonly decorators: SyntaxNode[] = [];
  /** Functions and classes directly in this scope. */
  readonly inner: Scope[] = [];
  isAsync = false;
  isGenerator = false;

  constructor(
    readonly kind: ScopeKind,
    readonly name: string,
    readonly node: SyntaxNode,
    readonly parent: Scope | null,
  ) {
    parent?.inner.push(this);
  }

  /** The class of a method; null for anything else. */
  get methodOf(): Scope | null {
    return this.kind === "function" && this.parent?.kind === "class" ? this.parent : null;
  }

  /** The innermost function or lambda around it, itself included; null in module and class bodies. */
  get functionAround(): Scope | null {
    let scope: Scope | null = this;
    while (scope !== null && scope.kind !== "function" && scope.kind !== "lambda") {
      scope = scope.kind === "module" ? null : scope.parent;
    }
    return scope;
  }

  /** The method that this scope is or is nested in; its first parameter is the instance. */
  get methodAround(): Scope | null {
    let scope: Scope | null = this;
    while (scope !== null && scope.methodOf === null) {
      scope = scope.parent;
    }
    return scope;
  }

  get isStatic(): boolean {
    return this.decorators.some((node) => node.text === "staticmethod");
  }

  parameter(name: string): Parameter | undefined {
    return this.parameters.find((each) => each.name === name);
  }

  bind(name: string, write: Write): void {
    const writes = this.writes.get(name);
    if (writes === undefined) {
      this.writes.set(name, [write]);
    } else {
      writes.push(write);
    }
  }
}
