/** The uses of the container in a slot: what adds, what removes, and where it is passed on. */
import {
  argumentsOf,
  around,
  assignedTo,
  bare,
  integerValue,
  mentions,
  positionals,
} from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import type { Names } from "./names.js";
import type { Scope } from "./scope.js";
import type { Slot, Slots } from "./slots.js";

/**
 * - `grow`: an entry is added. `element grow`: to a container that is an entry.
 * - `shrink`: entries are removed, or the container is replaced.
 * - `check`: its length is compared.
 * - `give`: it is returned or passed on; its further uses are unknown.
 */
export type UseKind = "grow" | "element grow" | "shrink" | "element shrink" | "check" | "give";

export interface Use {
  readonly kind: UseKind;
  /** The call or statement. */
  readonly at: SyntaxNode;
  readonly scope: Scope;
  /** The method, or "[]=", "+=", "=". */
  readonly by: string;
  readonly key: SyntaxNode | null;
  /** The added value. */
  readonly value: SyntaxNode | null;
}

const GROWING = new Set(
  "append add insert extend extendleft appendleft update setdefault put put_nowait".split(" "),
);
const SHRINKING = new Set(
  (
    "pop popitem popleft remove discard clear difference_update intersection_update " +
    "symmetric_difference_update get_nowait task_done expire evict prune purge cache_clear " +
    "popall subtract truncate delete invalidate"
  ).split(" "),
);
const PICKING = new Set(["get", "setdefault", "__getitem__"]);
const EACH = new Set(["values", "items"]);
const ADDING_FUNCTIONS = /^(?:heappush|insort|insort_left|insort_right)$/;
const REMOVING_FUNCTIONS =
  /^(?:heappop|heappushpop|heapreplace)$|evict|trim|prun|clean|purge|expir|clear|flush|drain|remov|delete|shrink|sweep|truncate|discard|limit|consume/i;

const DEEPEST_ALIAS = 3;

export class Uses {
  readonly #known = new Map<Slot, readonly Use[]>();

  constructor(
    readonly slots: Slots,
    readonly names: Names,
  ) {}

  of(slot: Slot): readonly Use[] {
    const known = this.#known.get(slot);
    if (known !== undefined) {
      return known;
    }
    this.#known.set(slot, []); // aliases in a circle
    const uses = this.#collect(slot, 0);
    this.#known.set(slot, uses);
    return uses;
  }

  /** Removals from an attribute with this name, on an object of unknown class: `job.owner.running.remove(job)`. */
  throughOthers(slot: Slot): Use[] {
    if (slot.kind !== "class" || !slot.name.startsWith("_")) {
      return [];
    }
    return this.slots.module
      .attributesNamed(slot.name)
      .filter((node) => this.slots.of(node) === null)
      .flatMap((node) => this.#usesAt(node, DEEPEST_ALIAS))
      .filter(({ kind, by }) => kind === "shrink" && by !== "=");
  }

  #collect(slot: Slot, depth: number): Use[] {
    return this.slots.references(slot).flatMap((node) => this.#usesAt(node, depth));
  }

  #usesAt(node: SyntaxNode, depth: number): Use[] {
    const outer = around(node);
    if (outer === null) {
      return [];
    }
    const isValue = outer.child("value") === node || bareChild(outer, "value") === node;
    switch (outer.kind) {
      case "attribute":
        return this.#method(outer, depth);
      case "subscript":
        return isValue ? this.#subscript(node, outer, depth) : [];
      case "augmented_assignment":
        return outer.child("left") === node ? [this.#augment(outer)] : [];
      case "assignment":
        return outer.child("left") === node
          ? this.#rebind(node, outer.child("right"), outer)
          : this.#alias(node, depth);
      case "named_expression":
        return outer.child("name") === node
          ? this.#rebind(node, outer.child("value"), outer)
          : this.#alias(node, depth);
      case "pattern_list":
      case "tuple_pattern":
      case "expression_list":
        return this.#inPattern(node, outer);
      case "delete_statement":
        return [this.#use("shrink", outer, "del")];
      case "argument_list":
      case "keyword_argument":
        return this.#argument(node, outer, depth);
      case "default_parameter":
      case "typed_default_parameter":
        return isValue ? this.#default(outer, depth) : [];
      case "return_statement":
      case "yield":
        return [this.#use("give", outer, outer.kind)];
      case "for_statement":
      case "for_in_clause":
        return outer.child("right") === node ? this.#eachElement(outer, depth) : [];
      default:
        return [];
    }
  }

  #method(attribute: SyntaxNode, depth: number): Use[] {
    const method = attribute.child("attribute")?.text ?? "";
    const outer = around(attribute);
    if (outer?.kind === "call" && bareChild(outer, "function") === attribute) {
      return this.#call(outer, method, depth);
    }
    // `append = items.append`: a call of the other name adds.
    if (GROWING.has(method) || SHRINKING.has(method)) {
      const alias = this.slots.aliasOf(attribute);
      const kind = GROWING.has(method) ? "grow" : "shrink";
      if (alias === null) {
        return [this.#use(kind, attribute, method)];
      }
      return this.slots.references(alias).flatMap((reference) => {
        const call = around(reference);
        return call?.kind === "call"
          ? [this.#use(kind, call, method, null, positionals(call)[0] ?? null)]
          : [];
      });
    }
    return [];
  }

  #call(call: SyntaxNode, method: string, depth: number): Use[] {
    const args = positionals(call);
    const uses: Use[] = [];
    if (method === "setdefault") {
      uses.push(this.#use("grow", call, method, args[0] ?? null, args[1] ?? null));
    } else if (method === "insert" || method === "move_to_end") {
      uses.push(this.#use("grow", call, method, null, args[1] ?? null));
    } else if (GROWING.has(method)) {
      uses.push(this.#use("grow", call, method, null, args[0] ?? null));
    } else if (SHRINKING.has(method)) {
      uses.push(this.#use("shrink", call, method, args[0] ?? null));
    }
    if (PICKING.has(method)) {
      uses.push(...this.#element(call, args[0] ?? null, depth));
    }
    const loop = around(call);
    if (EACH.has(method) && loop !== null && bareChild(loop, "right") === call) {
      uses.push(...this.#eachElement(loop, depth));
    }
    return method === "move_to_end" ? [] : uses;
  }

  #subscript(node: SyntaxNode, subscript: SyntaxNode, depth: number): Use[] {
    const outer = around(subscript);
    const key = subscript.child("subscript");
    if (outer === null) {
      return [];
    }
    const isSlice = key?.kind === "slice";
    if (outer.kind === "delete_statement") {
      return [this.#use("shrink", outer, "del", key)];
    }
    if (outer.kind === "expression_list" && outer.parent?.kind === "delete_statement") {
      return [this.#use("shrink", outer, "del", key)];
    }
    if (outer.kind === "assignment" && outer.child("left") === subscript) {
      let value = outer.child("right");
      while (value?.kind === "assignment") {
        value = value.child("right"); // d[k] = x = value
      }
      return [this.#use(isSlice ? "shrink" : "grow", outer, "[]=", key, value)];
    }
    if (outer.kind === "pattern_list" || outer.kind === "tuple_pattern") {
      return [this.#use("grow", outer, "[]=", key, null)];
    }
    if (outer.kind === "augmented_assignment" && outer.child("left") === subscript) {
      return [this.#use("grow", outer, "[]+=", key, outer.child("right"))];
    }
    return node === subscript ? [] : this.#element(subscript, key, depth);
  }

  /** The uses of an entry: `d[k].append(x)`, `bucket = d[k]`, `d[k][j] = v`. */
  #element(entry: SyntaxNode, key: SyntaxNode | null, depth: number): Use[] {
    const alias = this.slots.aliasOf(entry);
    if (alias !== null && depth < DEEPEST_ALIAS) {
      return this.#collect(alias, depth + 1).flatMap((use) => asElement(use, key));
    }
    return this.#usesAt(entry, DEEPEST_ALIAS).flatMap((use) => asElement(use, key));
  }

  #eachElement(loop: SyntaxNode, depth: number): Use[] {
    const left = loop.child("left");
    const targets = left === null ? [] : left.kind === "identifier" ? [left] : left.children;
    return depth >= DEEPEST_ALIAS
      ? []
      : targets.flatMap((target) => {
          const slot = target.kind === "identifier" ? this.slots.of(target) : null;
          return slot === null || slot.kind !== "local"
            ? []
            : this.#collect(slot, DEEPEST_ALIAS).flatMap((use) => asElement(use, null));
        });
  }

  #augment(statement: SyntaxNode): Use {
    const operator = statement.child("operator")?.text ?? "";
    const kind = operator === "+=" || operator === "|=" ? "grow" : "shrink";
    return this.#use(kind, statement, operator, null, statement.child("right"));
  }

  /** `x = x + [y]` adds, `x = x[-100:]` removes, and any other assignment in a function replaces. */
  #rebind(node: SyntaxNode, value: SyntaxNode | null, statement: SyntaxNode): Use[] {
    if (value === null) {
      return [];
    }
    const expression = bare(value);
    const isAddition =
      expression.kind === "binary_operator" &&
      /^[+|]$/.test(expression.child("operator")?.text ?? "");
    const isUnpacking =
      /^(?:list|dictionary|set)$/.test(expression.kind) &&
      expression.children.some(({ kind }) => /^(?:list|dictionary)_splat$/.test(kind));
    const name = node.kind === "attribute" ? node.child("attribute")?.text : node.text;
    if ((isAddition || isUnpacking) && namesIt(expression, node, name ?? "")) {
      return [this.#use("grow", statement, "=", null, value)];
    }
    return [this.#use("shrink", statement, "=", null, value)];
  }

  #inPattern(node: SyntaxNode, pattern: SyntaxNode): Use[] {
    const outer = around(pattern);
    if (outer?.kind === "delete_statement") {
      return [this.#use("shrink", outer, "del")];
    }
    const isTarget = outer?.kind === "assignment" && outer.child("left") === pattern;
    return isTarget ? [this.#use("shrink", node, "=")] : [];
  }

  #alias(node: SyntaxNode, depth: number): Use[] {
    const target = assignedTo(node);
    if (target === null || depth >= DEEPEST_ALIAS) {
      return [];
    }
    const slot = this.slots.of(target);
    if (slot === null || slot.kind !== "local") {
      return slot === null ? [] : [this.#use("give", node, "=")];
    }
    return this.#collect(slot, depth + 1).filter(({ by }) => by !== "=");
  }

  /** `lambda done, waiters=self.waiters: waiters.remove(done)`: the parameter is another name for it. */
  #default(parameter: SyntaxNode, depth: number): Use[] {
    const definition = parameter.parent?.parent;
    const scope = definition ? this.slots.module.scopeOpenedBy(definition) : undefined;
    const name = parameter.child("name")?.text;
    return scope === undefined || name === undefined || depth >= DEEPEST_ALIAS
      ? []
      : this.#collect(this.slots.slot(scope, name), depth + 1).filter(({ by }) => by !== "=");
  }

  #argument(node: SyntaxNode, list: SyntaxNode, depth: number): Use[] {
    const call = around(list.kind === "keyword_argument" ? (list.parent ?? list) : list);
    const callee = call?.kind === "call" ? call.child("function") : null;
    if (call === null || callee === null) {
      return [];
    }
    const name = callee.kind === "attribute" ? callee.child("attribute")?.text : callee.text;
    if (name === "len") {
      return this.#length(call);
    }
    const [first, second] = argumentsOf(call);
    if (ADDING_FUNCTIONS.test(name ?? "") && first === node) {
      return [this.#use("grow", call, name ?? "", null, second ?? null)];
    }
    if (REMOVING_FUNCTIONS.test(name ?? "")) {
      return [this.#use("shrink", call, name ?? "")];
    }
    const called = this.names.functionNamed(callee);
    const position = argumentsOf(call).indexOf(node);
    if (called !== null && position !== -1 && depth < DEEPEST_ALIAS) {
      const keywordName = list.kind === "keyword_argument" ? list.child("name")?.text : undefined;
      const offset = called.methodOf !== null && !called.isStatic ? 1 : 0;
      const parameter = keywordName ?? called.parameters[position + offset]?.name;
      if (parameter !== undefined) {
        const inside = this.#collect(this.slots.slot(called, parameter), depth + 1);
        return [...inside.filter(({ by }) => by !== "="), this.#use("give", call, name ?? "")];
      }
    }
    return READERS.has(name ?? "") ? [] : [this.#use("give", call, name ?? "")];
  }

  /** `len(x) > limit` is a bound; `len(x) > 0` is not. */
  #length(call: SyntaxNode): Use[] {
    let outer = around(call);
    while (outer !== null && /operator$/.test(outer.kind) && outer.kind !== "comparison_operator") {
      outer = around(outer);
    }
    if (outer?.kind !== "comparison_operator") {
      return [];
    }
    const isTrivial = outer.children.some((child) => {
      const number = integerValue(child);
      return number !== null && number <= 1;
    });
    return isTrivial ? [] : [this.#use("check", outer, "len")];
  }

  #use(
    kind: UseKind,
    at: SyntaxNode,
    by: string,
    key: SyntaxNode | null = null,
    value: SyntaxNode | null = null,
  ): Use {
    return { kind, at, by, key, value, scope: this.slots.module.scopeOf(at) };
  }
}

/** Builtins that do not keep their argument. */
const READERS = new Set(
  (
    "list dict set tuple sorted sum min max any all print str repr iter enumerate zip map filter reversed " +
    "isinstance id next bool frozenset join dumps format hash type"
  ).split(" "),
);

function asElement(use: Use, key: SyntaxNode | null): Use[] {
  const isNumber =
    use.by === "+=" &&
    !/^(?:list|tuple|list_comprehension|identifier|call)$/.test(use.value?.kind ?? "");
  if (use.kind === "grow" && !isNumber) {
    return [{ ...use, kind: "element grow", key }];
  }
  if (use.kind === "shrink" && use.by !== "=" && use.by !== "del") {
    return [{ ...use, kind: "element shrink", key }];
  }
  return [];
}

function bareChild(node: SyntaxNode, field: string): SyntaxNode | null {
  const child = node.child(field);
  return child === null ? null : bare(child);
}

function namesIt(expression: SyntaxNode, node: SyntaxNode, name: string): boolean {
  return node.kind === "attribute"
    ? new RegExp(`(?<![\\w.])${node.text.replaceAll(/\W/g, "\\$&")}\\b`).test(expression.text)
    : mentions(expression, name);
}
