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
  },
};
