import { canEnd, isEndless } from "../flow/loops.js";
import { isTypeLike } from "../flow/registration.js";
import { isInside } from "../syntax/expressions.js";
import { code, gains, onlyGrows } from "./growing.js";
import type { Rule } from "./rule.js";

export const endlessLoopContainerGrows: Rule = {
  id: "TM-L005",
  name: "endless-loop-container-grows",
  severity: "error",
  finds: "A local container that an endless loop adds to and that nothing is removed from.",
  why: "The loop never ends, so the local variable is never released.",
  speed: "One entry for each iteration.",
  before: `
def consume(queue):
    seen = set()
    while True:
        message = queue.get()
        if message.id not in seen:
            seen.add(message.id)
            process(message)
`,
  after: `
def consume(queue):
    seen = BoundedSet(10_000)
    while True:
        message = queue.get()
        if message.id not in seen:
            seen.add(message.id)
            process(message)
`,
  ignore: "The loop ends with a break or a return after a bounded number of iterations.",
  proof: "`tidemark attach PID` names the line, and the frame of the function as the holder.",
  *check(file) {
    for (const loop of file.module
      .nodesOf("while_statement")
      .concat(file.module.nodesOf("for_statement"))) {
      if (!isEndless(loop)) {
        continue;
      }
      const scope = file.module.scopeOf(loop);
      for (const growth of scope.kind === "class" ? [] : file.containers.all(scope)) {
        const isOutside = growth.slot.owner.writes
          .get(growth.slot.name)
          ?.some(({ target, kind }) => kind === "assign" && !isInside(target, loop));
        const use = growth.grows.find(
          ({ at, by, key }) => isInside(at, loop) && by !== "[]+=" && !isTypeLike(key),
        );
        const isReset = file.uses
          .of(growth.slot)
          .some(({ kind, at }) => kind === "shrink" && isInside(at, loop));
        // `while True: ... break`, and then the result: the loop reads to the end of something.
        const isResult =
          canEnd(loop) && file.slots.references(growth.slot).some(({ start }) => start >= loop.end);
        if (!isResult && isOutside === true && use !== undefined && onlyGrows(growth) && !isReset) {
          yield {
            node: use.at,
            message: `${code(growth.slot.name)} ${gains(growth)} in each iteration of an endless loop, and nothing removes any`,
          };
        }
      }
    }
  },
};
