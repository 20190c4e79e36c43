/**
 * Shared by the rules about objects that are created for each request: calls by their full names, and the fate of
 * their results.
 */
import type { FileFacts } from "../flow/file_facts.js";
import type { Repeat } from "../flow/repeats.js";
import type { Call } from "../scopes/module.js";

/** Calls whose full name matches. Names of classes also match without a visible import. */
export function* callsMatching(
  pattern: RegExp,
  file: FileFacts,
): Generator<Call & { full: string }> {
  for (const name of file.module.calledNames) {
    for (const call of file.module.callsOf(name)) {
      const full = file.names.resolve(call.callee);
      if (full !== null && pattern.test(full)) {
        yield { ...call, full };
      }
    }
  }
}

/** Why the call runs repeatedly, if its result is not kept for the next iteration. */
export function madeAgain(call: Call, file: FileFacts): Repeat | null {
  const repeat = file.repeats.of(call.node);
  return repeat === null || isMadeOnce(call) ? null : repeat;
}

/** `if client is None: client = ...`, `if key not in clients: clients[key] = ...`, `global client`. */
function isMadeOnce(call: Call): boolean {
  for (let node = call.node.parent; node !== null && node !== call.scope.node; node = node.parent) {
    if (node.kind === "if_statement") {
      const condition = node.child("condition")?.text ?? "";
      if (/\bis None\b|\bnot in\b|^not \w|hasattr|is_closed|\.closed|== None/.test(condition)) {
        return true;
      }
    }
    if (
      node.kind === "except_clause" &&
      /KeyError|AttributeError|NameError|LookupError/.test(node.text.slice(0, 60))
    ) {
      return true;
    }
    if (node.kind === "boolean_operator" && node.text.includes(" or ")) {
      return true;
    }
  }
  // A cached function creates it once.
  return call.scope.decorators.some(({ text }) =>
    /^[\w.]*(?:cache|cached|fixture|singleton|lazy)\w*(?:\(|$)/.test(text),
  );
}
