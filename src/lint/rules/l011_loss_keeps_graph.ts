import type { FileFacts } from "../flow/file_facts.js";
import { isDetached } from "../flow/tensors.js";
import { bare, isInside } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Fix, Rule } from "./rule.js";

export const lossKeepsGraph: Rule = {
  id: "TM-L011",
  name: "loss-keeps-graph",
  severity: "error",
  finds: "A loss that is summed over steps (`total += loss`) as a tensor that still has its graph.",
  why: "The sum refers to the graph of every step, and each graph to its activations.",
  speed: "The activations of every step, so device memory is full within an epoch.",
  before: `
import torch

def train(model, loader, criterion, optimizer):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss
    return total / len(loader)
`,
  after: `
import torch

def train(model, loader, criterion, optimizer):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)
`,
  ignore: "`backward` is called on the sum itself, after a bounded number of steps.",
  proof: "`tidemark run` reports the kind `graph-retention`, with the line that keeps it.",
  *check(file) {
    if (!file.tensors.usesTorch) {
      return;
    }
    const additions = [
      ...file.module.nodesOf("augmented_assignment"),
      ...file.module.nodesOf("assignment"),
    ];
    for (const statement of additions) {
      const target = statement.child("left");
      const value = addedValue(statement);
      const loop = file.repeats.loopAround(statement);
      if (target === null || value === null) {
        continue;
      }
      const scope = file.module.scopeOf(statement);
      const isKept = loop !== null ? !isMadeIn(target, loop, file) : target.kind === "attribute";
      const losses = file.tensors.lossesOf(scope);
      if (
        !isKept ||
        !file.tensors.trains(scope) ||
        losses.has(target.text) ||
        isFreed(target, file)
      ) {
        continue;
      }
      if (
        !isDetached(value) &&
        file.tensors.carriesGraph(value, scope) &&
        !file.tensors.isWithoutGradients(statement)
      ) {
        yield {
          node: statement,
          message: `${code(target.text)} adds up ${code(value.text)} with its graph: the activations of every step stay in memory`,
          ...detached(value, "add up"),
        };
      }
    }
  },
};

/** The fix that takes a tensor without its graph, for a variable or an attribute. */
export function detached(value: SyntaxNode, verb: string): { fix?: Fix } {
  return /^[\w.]+$/.test(value.text)
    ? {
        fix: {
          description: `${verb} ${value.text}.detach()`,
          edits: [{ start: value.end, end: value.end, text: ".detach()" }],
        },
      }
    : {};
}

/** `loss` of `total += loss` and of `total = total + loss`. */
function addedValue(statement: SyntaxNode): SyntaxNode | null {
  const right = statement.child("right");
  if (right === null) {
    return null;
  }
  if (statement.kind === "augmented_assignment") {
    return statement.child("operator")?.text === "+=" ? bare(right) : null;
  }
  const sum = bare(right);
  const target = statement.child("left")?.text;
  if (sum.kind !== "binary_operator" || sum.child("operator")?.text !== "+") {
    return null;
  }
  const [left, other] = [sum.child("left"), sum.child("right")];
  if (left?.text === target) {
    return other;
  }
  return other?.text === target ? left : null;
}

/** Whether every iteration of the loop assigns the variable. */
function isMadeIn(target: SyntaxNode, loop: SyntaxNode, file: FileFacts): boolean {
  if (target.kind !== "identifier") {
    return false;
  }
  const statement = target.parent;
  return file.names
    .writesOf(target)
    .some(
      (write) =>
        write.kind !== "augment" &&
        write.target.parent !== statement &&
        isInside(write.target, loop),
    );
}

/** `backward` is called on the sum: in the same function, or for an attribute in any. */
function isFreed(target: SyntaxNode, file: FileFacts): boolean {
  const scope = file.module.scopeOf(target);
  const named = new RegExp(`(?<![\\w.])${target.text.replaceAll(/\W/g, "\\$&")}\\b`);
  return file.module
    .callsOf("backward")
    .some(
      (call) =>
        (target.kind === "attribute" || call.scope === scope) &&
        named.test(`${call.receiver?.text ?? ""} ${call.node.child("arguments")?.text ?? ""}`),
    );
}
