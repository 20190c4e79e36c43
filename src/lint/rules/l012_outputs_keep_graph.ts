import type { FileFacts } from "../flow/file_facts.js";
import { isConstant } from "../flow/registration.js";
import { isDetached } from "../flow/tensors.js";
import type { Call } from "../scopes/module.js";
import type { Scope } from "../scopes/scope.js";
import type { Slot } from "../scopes/slots.js";
import { isInside, positionals } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code, onlyGrows } from "./growing.js";
import { detached } from "./l011_loss_keeps_graph.js";
import type { Rule } from "./rule.js";

export const outputsKeepGraph: Rule = {
  id: "TM-L012",
  name: "outputs-keep-graph",
  severity: "error",
  finds:
    "Losses, outputs or metrics that a training loop stores in a list or dict as tensors with their graph.",
  why: "Each tensor keeps the graph of its step, and the graph keeps the activations.",
  speed: "The activations of every step.",
  before: `
import torch

def train(model, loader, criterion, optimizer):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses
`,
  after: `
import torch

def train(model, loader, criterion, optimizer):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
`,
  ignore: "The list is stacked into the loss on which `backward` is called, in the same step.",
  proof: "`tidemark run` reports the kind `graph-retention`, with the line that appends.",
  *check(file) {
    if (!file.tensors.usesTorch) {
      return;
    }
    for (const call of file.module.callsOf("append", "add", "appendleft", "extend", "update")) {
      for (const value of positionals(call.node)) {
        yield* reportOf(value, call.receiver, call.node, call.scope, file);
      }
    }
    for (const node of file.module.nodesOf("assignment")) {
      const left = node.child("left");
      const right = node.child("right");
      // A constant key keeps only the last one.
      const isNewEntry = left?.kind === "subscript" && !isConstant(left.child("subscript"));
      if (isNewEntry && right !== null) {
        yield* reportOf(right, left.child("value"), node, file.module.scopeOf(node), file);
      }
    }
  },
};

function* reportOf(
  value: SyntaxNode,
  holder: SyntaxNode | null,
  at: SyntaxNode,
  scope: Scope,
  file: FileFacts,
) {
  const { tensors } = file;
  if (holder === null || isDetached(value)) {
    return;
  }
  if (!tensors.trains(scope)) {
    yield* keptByModule(value, holder, at, scope, file);
    return;
  }
  const slot = file.slots.of(holder);
  const loop = file.repeats.loopAround(at);
  const isAttribute = holder.kind === "attribute";
  if (loop === null && !isAttribute) {
    return;
  }
  if (!tensors.carriesGraph(value, scope) || tensors.isWithoutGradients(at)) {
    return;
  }
  if (slot !== null && (isMadeInLoop(slot, loop, file) || feedsLoss(holder.text, scope, file))) {
    return;
  }
  yield {
    node: at,
    message: `${code(holder.text)} keeps ${code(value.text)} with its graph: the activations of every step stay in memory`,
    ...detached(value, "keep"),
  };
}

/** `self.outputs.append(y)` in `forward`: one more for each pass. */
function* keptByModule(
  value: SyntaxNode,
  holder: SyntaxNode,
  at: SyntaxNode,
  scope: Scope,
  file: FileFacts,
) {
  const owner = scope.methodOf;
  const isForward = scope.name === "forward" && owner !== null && file.tensors.isModuleClass(owner);
  const slot = isForward && holder.kind === "attribute" ? file.slots.of(holder) : null;
  const growth = slot === null ? null : file.containers.of(slot);
  const isList = growth !== null && growth.container.kind !== "dict" && onlyGrows(growth);
  if (isList && isCalled(value, file) && growth.gives.length === 0) {
    yield {
      node: at,
      message: `${code(holder.text)} keeps ${code(value.text)} of each forward pass with its graph, and nothing removes any`,
    };
  }
}

function isCalled(value: SyntaxNode, file: FileFacts): boolean {
  const made = file.names.valueOf(value);
  return made.kind === "call" && /^self\.\w+$/.test(made.child("function")?.text ?? "");
}

function isMadeInLoop(slot: Slot, loop: SyntaxNode | null, file: FileFacts): boolean {
  const uses = file.uses.of(slot);
  if (
    uses.some(
      ({ kind, by, at }) =>
        kind === "shrink" && (by !== "=" || (loop !== null && isInside(at, loop))),
    )
  ) {
    return true;
  }
  return (
    loop !== null &&
    file.slots.writesOf(slot).some(({ target }) => isInside(target, loop) && slot.kind === "local")
  );
}

/** `torch.stack(losses).mean().backward()`, or `loss = sum(losses)`: the list is part of the step. */
function feedsLoss(name: string, scope: Scope, file: FileFacts): boolean {
  const isFed = (call: Call) =>
    call.scope === scope &&
    new RegExp(`\\b${name.replaceAll(/\W/g, "\\$&")}\\b`).test(
      call.node.child("arguments")?.text ?? "",
    );
  const losses = file.tensors.lossesOf(scope);
  return (
    [...losses].some((loss) => loss === name) ||
    file.module
      .callsOf("stack", "cat", "sum", "mean", "criterion", "loss_fn")
      .some(
        (call) =>
          isFed(call) &&
          [...losses].some((loss) =>
            (scope.writes.get(loss) ?? []).some(
              ({ value }) => value !== null && isInside(call.node, value),
            ),
          ),
      )
  );
}
