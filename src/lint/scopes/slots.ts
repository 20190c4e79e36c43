/**
 * A slot is a place that holds a value beyond one expression: a name of a module, a class, a function, an attribute of
 * instances, or a dotted path such as `app.state.cache`. Its uses are found through aliases.
 */
import { assignedTo, bare, dottedText } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import type { Module } from "./module.js";
import type { Names } from "./names.js";
import type { Scope, Write } from "./scope.js";

export interface Slot {
  /** Of a module, class or function; for a path, the module. */
  readonly owner: Scope;
  readonly name: string;
  readonly kind: "module" | "class" | "local" | "path";
}

export class Slots {
  readonly #slots = new Map<Scope, Map<string, Slot>>();
  readonly #byNode = new Map<SyntaxNode, Slot | null>();
  readonly #references = new Map<Slot, SyntaxNode[]>();
  #attributeWrites: Map<Scope, Map<string, Write[]>> | null = null;

  constructor(
    readonly module: Module,
    readonly names: Names,
  ) {}

  /** The slot that an identifier or attribute refers to; null if it is not a slot. */
  of(node: SyntaxNode): Slot | null {
    const known = this.#byNode.get(node);
    if (known !== undefined) {
      return known;
    }
    const slot = this.#find(bare(node));
    this.#byNode.set(node, slot);
    return slot;
  }

  slot(owner: Scope, name: string): Slot {
    const ofOwner = this.#slots.get(owner) ?? new Map<string, Slot>();
    this.#slots.set(owner, ofOwner);
    let slot = ofOwner.get(name);
    if (slot === undefined) {
      const kind = name.includes(".")
        ? "path"
        : owner.kind === "module" || owner.kind === "class"
          ? owner.kind
          : "local";
      slot = { owner, name, kind };
      ofOwner.set(name, slot);
    }
    return slot;
  }

  /** All assignments: in the class body and to `self.NAME` for an attribute. */
  writesOf(slot: Slot): readonly Write[] {
    if (slot.kind === "path") {
      return this.references(slot).flatMap((node) => {
        const parent = node.parent;
        return parent?.kind === "assignment" && parent.child("left") === node
          ? [
              {
                kind: "assign",
                target: node,
                value: parent.child("right"),
                from: this.module.scopeOf(node),
              } satisfies Write,
            ]
          : [];
      });
    }
    const own = slot.owner.writes.get(slot.name) ?? [];
    return slot.kind === "class" ? [...own, ...this.#writesToAttribute(slot)] : own;
  }

  /** The only value that is ever assigned to the slot; null if there are several or none. */
  valueOf(slot: Slot): SyntaxNode | null {
    const writes = this.writesOf(slot).filter(({ kind }) => kind !== "augment");
    const [only] = writes;
    return writes.length === 1 && (only?.kind === "assign" || only?.kind === "with")
      ? only.value
      : null;
  }

  /** Names that methods set on `self`, or statements on the class. */
  attributesOf(owner: Scope): Set<string> {
    return new Set(this.#attributesOfClasses().get(owner)?.keys() ?? []);
  }

  /** Every expression that refers to the slot. */
  references(slot: Slot): readonly SyntaxNode[] {
    const known = this.#references.get(slot);
    if (known !== undefined) {
      return known;
    }
    const found: SyntaxNode[] = [];
    this.#references.set(slot, found);
    const last = slot.name.slice(slot.name.lastIndexOf(".") + 1);
    if (slot.kind !== "path") {
      found.push(...this.module.identifiersNamed(last).filter((node) => this.of(node) === slot));
    }
    if (slot.kind === "class" || slot.kind === "path") {
      found.push(...this.module.attributesNamed(last).filter((node) => this.of(node) === slot));
    }
    return found;
  }

  /** The local name that a reference is assigned to, if any. */
  aliasOf(reference: SyntaxNode): Slot | null {
    const target = assignedTo(reference);
    const slot = target?.kind === "identifier" ? this.of(target) : null;
    return slot?.kind === "local" ? slot : null;
  }

  #find(node: SyntaxNode): Slot | null {
    if (node.kind === "identifier") {
      const owner = this.names.binderOf(node.text, this.module.scopeOf(node));
      return owner === null ? null : this.slot(owner, node.text);
    }
    if (node.kind !== "attribute") {
      return null;
    }
    const object = node.child("object");
    const name = node.child("attribute")?.text ?? "";
    if (object === null) {
      return null;
    }
    const owner = this.names.selfClass(object) ?? this.names.classOf(object);
    if (owner !== null) {
      return this.slot(this.#home(owner, name), name);
    }
    const path = dottedText(node);
    const root = path === null ? null : firstIdentifier(node);
    const binder = root === null ? null : this.names.binderOf(root.text, this.module.scopeOf(root));
    return path !== null && binder?.kind === "module" ? this.slot(binder, path) : null;
  }

  /** The class that assigns the attribute, among this one and its bases in this file. */
  #home(owner: Scope, name: string, depth = 0): Scope {
    const hasIt =
      owner.writes.has(name) || this.#attributesOfClasses().get(owner)?.has(name) === true;
    if (hasIt || depth > 4) {
      return owner;
    }
    for (const base of this.names.basesOf(owner)) {
      const home = this.#home(base, name, depth + 1);
      if (home.writes.has(name) || this.#attributesOfClasses().get(home)?.has(name) === true) {
        return home;
      }
    }
    return owner;
  }

  #writesToAttribute(slot: Slot): readonly Write[] {
    return this.#attributesOfClasses().get(slot.owner)?.get(slot.name) ?? [];
  }

  /** Assignments to attributes of `self`, `cls` or a class, by class and name. */
  #attributesOfClasses(): Map<Scope, Map<string, Write[]>> {
    if (this.#attributeWrites === null) {
      this.#attributeWrites = new Map();
      for (const node of this.module.nodesOf("assignment")) {
        this.#recordTarget(node.child("left"), node.child("right"), "assign");
      }
      for (const node of this.module.nodesOf("augmented_assignment")) {
        this.#recordTarget(node.child("left"), node.child("right"), "augment");
      }
    }
    return this.#attributeWrites;
  }

  #recordTarget(
    target: SyntaxNode | null,
    value: SyntaxNode | null,
    kind: "assign" | "augment" | "unpack",
  ): void {
    if (target === null) {
      return;
    }
    if (target.kind === "pattern_list" || target.kind === "tuple_pattern") {
      const values = /^(?:expression_list|tuple)$/.test(value?.kind ?? "") ? value?.children : [];
      target.children.forEach((child, at) => {
        const paired = values?.length === target.children.length ? values[at] : undefined;
        this.#recordTarget(child, paired ?? value, paired === undefined ? "unpack" : kind);
      });
      return;
    }
    const object = target.kind === "attribute" ? target.child("object") : null;
    const owner = object === null ? null : this.names.selfClass(object);
    if (owner === null || this.#attributeWrites === null) {
      return;
    }
    const name = target.child("attribute")?.text ?? "";
    const ofClass = this.#attributeWrites.get(owner) ?? new Map<string, Write[]>();
    this.#attributeWrites.set(owner, ofClass);
    const from = this.module.scopeOf(target);
    ofClass.set(name, [...(ofClass.get(name) ?? []), { kind, target, value, from }]);
  }
}

function firstIdentifier(node: SyntaxNode): SyntaxNode | null {
  let inner: SyntaxNode | null = node;
  while (inner !== null && inner.kind === "attribute") {
    const object: SyntaxNode | null = inner.child("object");
    inner = object === null ? null : bare(object);
  }
  return inner?.kind === "identifier" ? inner : null;
}
