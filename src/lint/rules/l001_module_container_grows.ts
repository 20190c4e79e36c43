import type { FileFacts } from "../flow/file_facts.js";
import { isFromArguments, isTypeLike } from "../flow/registration.js";
import { entryOfApplication, isEntryEmptied, namesApplication } from "./application.js";
import { code, gains, growingUse, onlyGrows } from "./growing.js";
import type { Rule } from "./rule.js";

export const moduleContainerGrows: Rule = {
  id: "TM-L001",
  name: "module-container-grows",
  severity: "error",
  finds: "A module-level container that functions add to and that nothing is removed from.",
  why: "A module lives as long as the process, so every entry stays, with everything that it refers to.",
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

/** `app["bodies"][name] = body` and `app.state.seen.append(name)` in a handler. */
function* entriesOfApplication(file: FileFacts) {
  for (const { holder, node, key } of namesApplication(file) ? additions(file) : []) {
    const entry = entryOfApplication(holder, file);
    const repeat = entry === null ? null : file.repeats.of(node);
    if (entry === null || repeat?.origin !== "handler") {
      continue;
    }
    const slot = file.slots.of(holder);
    const isSeen = slot !== null && file.containers.of(slot) !== null;
    const isNewKey =
      key === null ||
      (isFromArguments(key, file.module.scopeOf(node).functionAround) && !isTypeLike(key));
    if (!isSeen && isNewKey && !isEntryEmptied(entry, file)) {
      yield {
        node,
        message: `${code(holder.text)} gains an entry ${key === null ? "" : "for each new key "}${repeat.text}, and nothing removes any`,
      };
    }
  }
}

/** What code adds to any container, by a key or at the end. */
function* additions(file: FileFacts) {
  for (const node of file.module.nodesOf("assignment")) {
    const left = node.child("left");
    const holder = left?.kind === "subscript" ? left.child("value") : null;
    const key = left?.child("subscript");
    if (holder !== null && key) {
      yield { holder, node, key };
    }
  }
  for (const { node, receiver } of file.module.callsOf("append", "add", "appendleft", "extend")) {
    if (receiver !== null) {
      yield { holder: receiver, node, key: null };
    }
  }
}
