import { code, gains, growingUse, isDeclared, onlyGrows } from "./growing.js";
import type { Rule } from "./rule.js";

export const classContainerGrows: Rule = {
  id: "TM-L002",
  name: "class-container-grows",
  severity: "error",
  finds:
    "A container in a class body, shared by all instances, to which methods add and from which nothing removes.",
  why: "It belongs to the class, not to the instance: it outlives every instance and keeps what each one added.",
  speed: "One entry for each call of the method, over all instances.",
  before: `
class Session:
    history = []

    def record(self, message):
        self.history.append(message)
`,
  after: `
class Session:
    def __init__(self):
        self.history = []

    def record(self, message):
        self.history.append(message)
`,
  ignore: "The class is a registry that is filled only while the program starts.",
  proof: "`tidemark heap PID --to list` shows the path `type NAME > dict > list`.",
  *check(file) {
    for (const owner of file.module.classes) {
      for (const growth of file.containers.all(owner)) {
        const writes = file.slots.writesOf(growth.slot);
        const isShared = writes.every(
          ({ target, kind }) => target.kind === "identifier" || kind === "augment",
        );

        if (
          !isShared ||
          isDeclared(owner, file) ||
          /^__.*__$/.test(growth.slot.name) ||
          !onlyGrows(growth)
        ) {
          continue;
        }
        const suspect = growingUse(growth, file);
        if (suspect !== null) {
          yield {
            node: suspect.use.at,
            severity: suspect.isRepeated || growth.container.kind !== "dict" ? "error" : "warning",
            message: `${code(growth.slot.name)} is shared by all instances of ${code(owner.name)}; it ${gains(growth)} ${suspect.when}, and nothing removes any`,
          };
        }
      }
    }
  },
};
