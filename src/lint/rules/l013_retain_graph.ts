import { keyword, positionals } from "../syntax/expressions.js";
import type { Rule } from "./rule.js";

export const retainGraph: Rule = {
  id: "TM-L013",
  name: "retain-graph-in-loop",
  severity: "warning",
  finds: "`backward(retain_graph=True)` in a loop or a training step.",
  why: "`backward` does not free the graph of the step, so anything that refers to the graph keeps all its buffers.",
  speed: "The buffers of every step whose graph is still referenced.",
  before: `
import torch

for x, y in loader:
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
`,
  after: `
import torch

for x, y in loader:
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
`,
  ignore: "Two losses share one graph, and the second `backward` of the step frees it.",
  proof: "`tidemark gpu PID` shows blocks of the category `autograd` that grow from step to step.",
  *check(file) {
    for (const call of file.module.callsOf("backward", "manual_backward", "grad")) {
      const retain = keyword(call.node, "retain_graph");
      const isRetained =
        retain?.text === "True" &&
        (call.name !== "grad" || keyword(call.node, "create_graph") === null);
      const repeat = file.repeats.of(call.node);
      const isStep = /(?:^|_)(?:step|train\w*|fit|optimi[sz]e|update)(?:_|$)/.test(call.scope.name);
      if (!isRetained || (repeat === null && !isStep)) {
        continue;
      }
      // The last one of the step frees the graph.
      const loop = file.repeats.loopAround(call.node);
      const others = file.module
        .callsOf("backward", "manual_backward", "grad")
        .filter(
          (other) =>
            other.scope === call.scope &&
            other.node.start > call.node.start &&
            (loop === null || other.node.end <= loop.end) &&
            keyword(other.node, "retain_graph")?.text !== "True",
        );
      if (others.length === 0 && positionals(call.node).length < 3) {
        yield {
          node: call.node,
          message:
            "`retain_graph=True` in each step keeps the buffers of the graph after `backward`",
        };
      }
    }
  },
};
