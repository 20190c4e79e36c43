import type { FileFacts } from "../flow/file_facts.js";
import { isFromArguments, isTypeLike } from "../flow/registration.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code, gains, growingUse, onlyGrows } from "./growing.js";
import type { Rule } from "./rule.js";

export const moduleContainerGrows: Rule = {
  id: "TM-L001",
  name: "module-container-grows",
  severity: "error",
  finds: "A container of a module to which functions add, and from which nothing removes.",
  why: "A module lives as long as the process, and so does every entry with all that it refers to.",
  speed: "One entry for each call, or for each new key.",
  before: `
RESULTS = {}

@app.get("/items/{item_id}")
def read_item(item_id: str):
    RESULTS[item_id] = load(item_id)
    return RESULTS[item_id]
`,
  after: `
RESULTS = {}

@app.get("/items/{item_id}")
def read_item(item_id: str):
    RESULTS[item_id] = load(item_id)
    while len(RESULTS) > 1000:
        RESULTS.pop(next(iter(RESULTS)))
    return RESULTS[item_id]
`,
  ignore: "The keys come from a small fixed set, such as the names in a configuration file.",
  proof: "`tidemark run` names the line as a suspect and `module NAME > dict` as the holder.",
  *check(file) {
    for (const growth of file.containers.all(file.module.root)) {
      if (!onlyGrows(growth) || file.emptiedElsewhere.has(growth.slot.name)) {
        continue;
      }
      const suspect = growingUse(growth, file);
      if (suspect !== null) {
        yield {
          node: suspect.use.at,
          severity: suspect.isRepeated ? "error" : "warning",
          message: `${code(growth.slot.name)} of this module ${gains(growth)} ${suspect.when}, and nothing removes any`,
        };
      }
    }
    yield* entriesOfApplication(file);
  },
};

/** `app["bodies"][name] = body` and `app.state.seen[name] = body` in a handler: another file makes the container. */
function* entriesOfApplication(file: FileFacts) {
  for (const node of file.module.nodesOf("assignment")) {
    const left = node.child("left");
    const holder = left?.kind === "subscript" ? left.child("value") : null;
    const key = left?.child("subscript");
    if (holder === null || !key || !APPLICATION.test(holder.text)) {
      continue;
    }
    const scope = file.module.scopeOf(node);
    const repeat = file.repeats.of(node);
    const slot = file.slots.of(holder);
    if (
      repeat?.origin === "handler" &&
      (slot === null || file.containers.of(slot) === null) &&
      isFromArguments(key, scope.functionAround) &&
      !isTypeLike(key) &&
      !isEmptied(holder.text, file)
    ) {
      yield {
        node,
        message: `${code(holder.text)} gains an entry for each new key ${repeat.text}, and nothing removes any`,
      };
    }
  }
  for (const call of file.module.callsOf("append", "add", "appendleft", "extend")) {
    const repeat = file.repeats.of(call.node);
    const holder = call.receiver === null ? null : entryText(call.receiver);
    const slot = call.receiver === null ? null : file.slots.of(call.receiver);
    if (
      repeat?.origin === "handler" &&
      holder !== null &&
      (slot === null || file.containers.of(slot) === null) &&
      !isEmptied(holder, file)
    ) {
      yield {
        node: call.node,
        message: `${code(holder)} gains an entry ${repeat.text}, and nothing removes any`,
      };
    }
  }
}

/** `app["seen"]`, also of `app.setdefault("seen", [])`. */
function entryText(holder: SyntaxNode): string | null {
  const text = holder.text.replace(/\.setdefault\(\s*(["'][^"']+["']).*\)$/s, "[$1]");
  return APPLICATION.test(text) ? text : null;
}

const APPLICATION =
  /^(?:self\.)?(?:request\.|req\.)?(?:app|current_app|application)(?:\.(?:config|extensions|state|ctx))?(?:\[["'][^\]]+\]|(?<=\.(?:state|ctx))\.\w+)$/;

/** Anything of the file removes from it, replaces it or looks at its length. */
function isEmptied(text: string, file: FileFacts): boolean {
  const last = /(?:\[["']|\.)(\w+)["'\]]*$/.exec(text)?.[1] ?? text;
  return new RegExp(
    `${last}["'\\]]*\\.(?:pop|popitem|clear|remove|discard)\\(|del [\\w.]*${last}|\\bdel .*${last}["'\\]]*\\[|len\\(.*${last}`,
  ).test(file.tree.source.text);
}
