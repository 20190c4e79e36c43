import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const gcLeftDisabled: Rule = {
  id: "TM-L038",
  name: "gc-left-disabled",
  severity: "warning",
  finds:
    "`gc.disable()` without `gc.enable()`, `gc.freeze()` in code that runs repeatedly, or a threshold of 0.",
  why: "Objects in cycles (exceptions with frames, closures, most object graphs) are then never freed.",
  speed: "All garbage in cycles; in a web service, a few KiB for each request.",
  before: `
import gc

def load_index(path):
    gc.disable()
    return build(path)
`,
  after: `
import gc

def load_index(path):
    gc.disable()
    try:
        return build(path)
    finally:
        gc.enable()
`,
  ignore: "The program calls `gc.collect()` itself, or ends soon.",
  proof: "`tidemark diagnose PID` reports the kind `cycle-garbage`.",
  *check(file) {
    const { module, names, repeats } = file;
    const calls = (name: string) =>
      module.callsOf(name).filter(({ callee }) => names.resolve(callee) === `gc.${name}`);
    const isReversed = calls("enable").length > 0 || calls("collect").length > 0;
    const mentionsEnable = /\bgc\.enable\b/.test(file.tree.source.text);
    for (const call of calls("disable")) {
      if (!isReversed && !mentionsEnable) {
        yield {
          node: call.node,
          message: `${code("gc.disable()")} is never followed by ${code("gc.enable()")}: cycles are not freed from here on`,
        };
      }
    }
    for (const call of calls("set_threshold")) {
      const [first] = call.node.child("arguments")?.children ?? [];
      if (first?.text === "0" && !isReversed && calls("set_threshold").length === 1) {
        yield {
          node: call.node,
          message: `${code("gc.set_threshold(0)")} switches the collector off, and nothing switches it on`,
        };
      }
    }
    for (const call of calls("freeze")) {
      const repeat = repeats.of(call.node);
      if (repeat !== null && calls("unfreeze").length === 0) {
        yield {
          node: call.node,
          severity: "error",
          message: `${code("gc.freeze()")} ${repeat.text} hides all objects from the collector, garbage included`,
        };
      }
    }
  },
};
