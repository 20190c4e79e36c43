import type { FileFacts } from "../flow/file_facts.js";
import type { Scope } from "../scopes/scope.js";
import { isInside } from "../syntax/expressions.js";
import type { Rule } from "./rule.js";

export const missingZeroGrad: Rule = {
  id: "TM-L014",
  name: "missing-zero-grad",
  severity: "warning",
  finds: "A training loop that calls `backward` and `step` but never `zero_grad`.",
  why: "Gradients accumulate over all steps, and their memory is never released between steps.",
  speed: "Once, by the size of the parameters. The training results are wrong as well.",
  before: `
import torch

for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
`,
  after: `
import torch

for x, y in loader:
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
`,
  ignore:
    "Another part of the program sets the gradients to zero, for example a wrapper around the optimizer.",
  proof: "`tidemark gpu PID` lists the gradients as live between the steps.",
  *check(file) {
    if (!file.tensors.usesTorch) {
      return;
    }
    for (const call of file.module.callsOf("backward")) {
      const loop = file.repeats.loopAround(call.node);
      if (loop === null || zeroes(call.scope, file)) {
        continue;
      }
      const steps = file.module
        .callsOf("step")
        .filter(
          ({ node, receiver }) =>
            isInside(node, loop) && /opt|scaler|adam|sgd|solver/i.test(receiver?.text ?? ""),
        );
      if (steps.length > 0 && !/DeepSpeed|deepspeed|LBFGS/.test(file.tree.source.text)) {
        yield {
          node: call.node,
          message:
            "this loop adds the gradients of each step to those before: it never calls `zero_grad`",
        };
        return;
      }
    }
  },
};

const ZEROING = ["zero_grad", "zero_grads", "clear_grad", "clear_gradients", "zero_", "zerograd"];

/** Whether a function, another method of its class, or a function that it calls sets gradients to zero. */
function zeroes(scope: Scope, file: FileFacts): boolean {
  const { module, names } = file;
  const places = [
    ...module.callsOf(...ZEROING).map((call) => call.scope),
    ...module
      .attributesNamed("grad")
      .filter(
        ({ parent, text }) => parent?.kind === "assignment" && parent.child("left")?.text === text,
      )
      .map((node) => module.scopeOf(node)),
  ];
  return places.some(
    (place) =>
      place === scope ||
      place === module.root ||
      (place.methodOf !== null && place.methodOf === scope.methodOf) ||
      [...module.callsOf(place.name)].some(
        (call) => call.scope === scope && names.functionNamed(call.callee) === place,
      ) ||
      place.parent === scope,
  );
}
