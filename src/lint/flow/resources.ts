/** The fate of objects that must be closed: files, connections, pools. */
import type { Names } from "../scopes/names.js";
import type { Slots } from "../scopes/slots.js";
import { argumentsOf, around, bare, statementOf, within } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";

/**
 * - `managed`: a `with` closes it. `closed`: its `close()` is called.
 * - `moved`: it is returned, stored, or passed to an owner. - `open`: the function ends without closing it.
 */
export type Fate = "managed" | "closed" | "moved" | "open";

const CLOSING =
  /^(?:close|aclose|shutdown|terminate|dispose|disconnect|stop|quit|release|join|wait|kill|communicate|detach|cleanup|unlink|cancel|close_all|poll|stop_server|__exit__|__aexit__|exit|finish|putconn|clf|end)$/;
const MANAGERS =
  /(?:^|\.)(?:closing|aclosing|enter_context|enter_async_context|push|push_async_callback|callback|using|autoclose)$/;
/** These read a file that is passed to them and return its contents. */
const READERS =
  /(?:^|\.)(?:json\.load|pickle\.load|yaml\.(?:safe_|full_)?load|csv\.(?:reader|DictReader|writer)|toml(?:lib)?\.load|load|safe_load|reader|DictReader|list|len|sum|sorted|set|tuple|map|enumerate|marshal\.load|pd\.read_\w+|pandas\.read_\w+|print|str|parse|read)$/;

export class Resources {
  constructor(
    readonly names: Names,
    readonly slots: Slots,
  ) {}

  /** `call` creates the resource. */
  fateOf(call: SyntaxNode): Fate {
    const outer = around(call);
    const parent = call.parent;
    if (outer === null || parent === null) {
      return "moved";
    }
    switch (outer.kind) {
      case "await":
      case "conditional_expression":
      case "boolean_operator":
        return this.fateOf(outer);
      case "with_item":
      case "as_pattern":
        return "managed";
      case "expression_statement":
        return "open";
      case "attribute":
        return this.#chained(outer);
      case "assignment":
      case "named_expression":
        // `a = b = open()`: two names, of which one may be closed.
        return outer.parent?.kind === "assignment"
          ? "moved"
          : this.#assigned(outer.child("left") ?? outer.child("name"));
      case "for_statement":
      case "for_in_clause":
        return "open"; // for line in open(path)
      case "argument_list": {
        const callee = outer.parent?.child("function");
        const name = callee ? (this.names.resolve(callee) ?? callee.text) : "";
        if (MANAGERS.test(name)) {
          return "managed";
        }
        return READERS.test(name) ? "open" : "moved";
      }
      default:
        return "moved";
    }
  }

  /** `open(path).read()`: nothing can close it; `Popen().wait()` ends it. */
  #chained(attribute: SyntaxNode): Fate {
    const method = attribute.child("attribute")?.text ?? "";
    const call = around(attribute);
    if (CLOSING.test(method)) {
      return "closed";
    }
    if (method === "__enter__" || method === "__aenter__" || call?.kind !== "call") {
      return "moved";
    }
    if (method === "start") {
      return "open";
    }
    const outer = around(call);
    const isManaged = outer?.kind === "with_item" || outer?.kind === "as_pattern";
    // A builder's method returns the resource, or something that holds it.
    return isManaged ||
      /^(?:connect|begin|start_|with_|cursor|set_|makefile|configure)/.test(method)
      ? "moved"
      : "open";
  }

  #assigned(target: SyntaxNode | null): Fate {
    const slot = target?.kind === "identifier" ? this.slots.of(target) : null;
    if (slot === null || slot.kind !== "local") {
      return target?.kind === "identifier" && slot?.kind === "module"
        ? this.#used(target, true)
        : "moved";
    }
    return this.#used(target as SyntaxNode, false);
  }

  /** The fate according to the uses of the variable that holds it. */
  #used(target: SyntaxNode, isModule: boolean): Fate {
    const slot = this.slots.of(target);
    if (slot === null) {
      return "moved";
    }
    const home = this.slots.module.scopeOf(target);
    let fate: Fate = "open";
    for (const reference of this.slots.references(slot)) {
      const next = this.#usedBy(reference);
      if (next === "managed" || next === "closed") {
        return next;
      }
      const isElsewhere = this.slots.module.scopeOf(reference) !== home;
      if (next === "moved" || isElsewhere) {
        fate = "moved";
      }
    }
    return isModule && slot.owner === home && fate === "open" ? "open" : fate;
  }

  #usedBy(reference: SyntaxNode): Fate | null {
    const outer = around(reference);
    switch (outer?.kind) {
      case "with_item":
      case "as_pattern":
        return "managed";
      case "attribute": {
        const method = outer.child("attribute")?.text ?? "";
        return CLOSING.test(method) ? "closed" : null;
      }
      case "argument_list":
      case "keyword_argument":
        return this.#passed(reference, outer);
      case "return_statement":
      case "yield":
        return "moved";
      case "expression_list":
      case "tuple":
      case "list":
      case "pair":
      case "dictionary":
      case "set":
      case "conditional_expression":
      case "boolean_operator":
      case "lambda":
        return "moved";
      case "assignment":
        return outer.child("left") === reference ? null : "moved";
      default:
        return null;
    }
  }

  #passed(reference: SyntaxNode, list: SyntaxNode): Fate | null {
    let call = around(list);
    if (list.kind === "keyword_argument") {
      call = list.parent?.parent ?? null;
    }
    const callee = call?.kind === "call" ? call.child("function") : null;
    if (callee === null || call === null) {
      return "moved";
    }
    const name = this.names.resolve(callee) ?? callee.text;
    const last = name.slice(name.lastIndexOf(".") + 1);
    if (MANAGERS.test(name)) {
      return "managed";
    }
    if (/close|shutdown|dispose|release|terminate|cleanup|quit/i.test(last)) {
      return "closed";
    }
    if (statementOf(call).kind === "return_statement") {
      return READERS.test(name) ? null : "moved";
    }
    const local = this.names.functionNamed(callee);
    if (local !== null) {
      const position = argumentsOf(call).indexOf(reference);
      const parameter = local.parameters[position + (local.methodOf === null ? 0 : 1)];
      const closes =
        parameter !== undefined &&
        [...within(local.node, "attribute")].some(
          (node) =>
            bare(node.child("object") ?? node).text === parameter.name &&
            CLOSING.test(node.child("attribute")?.text ?? ""),
        );
      const keeps =
        parameter !== undefined &&
        new RegExp(`self\\.\\w+\\s*=\\s*${parameter.name}\\b|return ${parameter.name}\\b`).test(
          local.node.text,
        );
      return closes ? "closed" : keeps ? "moved" : null;
    }
    // A class stores it, or it is added to a collection.
    return /^_*[A-Z]|^(?:add|append|appendleft|put|put_nowait|register\w*|set\w*|insert|push|extend|track|attach|add\w*|call\w*|start\w*|submit|partial|defer\w*|spawn\w*|flock|lockf)$/.test(
      last,
    )
      ? "moved"
      : null;
  }
}
