import type { FileFacts } from "../flow/file_facts.js";
import { isDetached } from "../flow/tensors.js";
import type { Scope } from "../scopes/scope.js";
import { bare, isInside, mentions, positionals } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const hookStoresOutputs: Rule = {
  id: "TM-L017",
  name: "hook-stores-outputs",
  severity: "error",
  finds:
    "A forward or backward hook that stores its inputs or outputs with their graph, or in a list that only grows.",
  why: "The stored tensor keeps its graph and all earlier activations; a list keeps those of every pass.",
  speed: "The activations of one forward pass; with a list, of every pass.",
  before: `
import torch

activations = []

def save(module, inputs, output):
    activations.append(output)

model.layer1.register_forward_hook(save)
`,
  after: `
import torch

activations = {}

def save(module, inputs, output):
    activations["layer1"] = output.detach()

model.layer1.register_forward_hook(save)
`,
  ignore: "The stored tensors are part of the loss, and are dropped after each step.",
  proof: "`tidemark run` reports the kind `graph-retention`, with the hook as the holder.",
  *check(file) {
    const hooks = new Set<Scope>();
    for (const call of file.module.callsOf(
      "register_forward_hook",
      "register_forward_pre_hook",
      "register_full_backward_hook",
      "register_backward_hook",
      "register_hook",
      "register_module_forward_hook",
    )) {
      const [given] = positionals(call.node);
      const hook = given === undefined ? null : hookOf(given, file);
      if (hook !== null) {
        hooks.add(hook);
      }
    }
    for (const hook of hooks) {
      yield* storedBy(hook, file);
    }
  },
};

/** The function: a lambda, a name, a method, or what a factory returns. */
function hookOf(given: SyntaxNode, file: FileFacts): Scope | null {
  const node = bare(given);
  if (node.kind === "lambda") {
    return file.module.scopeOpenedBy(node) ?? null;
  }
  const [first] =
    node.kind === "call" && /partial$/.test(node.child("function")?.text ?? "")
      ? positionals(node)
      : [];
  if (first !== undefined) {
    return hookOf(first, file);
  }
  const callee = node.kind === "call" ? node.child("function") : null;
  if (callee !== null && file.names.classNamed(callee) === null) {
    const factory = file.names.functionNamed(callee);
    return factory?.inner.find(({ kind, name }) => kind === "lambda" || name !== "") ?? null;
  }
  // An object is called, too: `register_forward_hook(self)`.
  const owner = file.names.selfClass(node) ?? file.names.classOf(node);
  return owner === null ? file.names.functionNamed(node) : file.names.methodOf(owner, "__call__");
}

function* storedBy(hook: Scope, file: FileFacts) {
  const offset = hook.methodOf === null ? 0 : 1;
  const tensors = hook.parameters
    .slice(offset)
    .filter(({ name }) => !/^(?:self|module|mod|m|layer|_+|name|key|idx|layer_name)$/.test(name));
  const isTensor = (value: SyntaxNode) =>
    tensors.some(({ name }) => mentions(value, name)) && !isReduced(value);
  for (const call of file.module.callsOf(
    "append",
    "add",
    "extend",
    "update",
    "setdefault",
    "put",
    "appendleft",
  )) {
    const value = positionals(call.node).find(isTensor);
    if (!isInside(call.node, hook.node) || call.receiver === null || value === undefined) {
      continue;
    }
    const slot = file.slots.of(call.receiver);
    const growth = slot === null ? null : file.containers.of(slot);
    const isEmptied =
      growth !== null &&
      (growth.shrinks.length > 0 || growth.container.isBounded || growth.isChecked);
    const isDetachedValue = isDetached(value);
    if (!isDetachedValue || (growth !== null && !isEmptied && slot?.kind !== "local")) {
      yield {
        node: call.node,
        message: isDetachedValue
          ? `the hook adds ${code(value.text)} to ${code(call.receiver.text)} in each pass, and nothing removes any`
          : `the hook adds ${code(value.text)} with its graph to ${code(call.receiver.text)} in each pass`,
      };
      return;
    }
  }
  for (const node of file.module.nodesOf("assignment")) {
    const left = node.child("left");
    const right = node.child("right");
    const isStored = left?.kind === "subscript" || left?.kind === "attribute";
    if (
      isInside(node, hook.node) &&
      isStored &&
      right !== null &&
      isTensor(right) &&
      !isDetached(right)
    ) {
      yield {
        node,
        severity: "warning" as const,
        message: `the hook stores ${code(right.text)} with its graph in ${code(left.text)}`,
      };
      return;
    }
  }
}

/** Numbers, shapes and statistics are small. */
function isReduced(value: SyntaxNode): boolean {
  return /\.(?:item|shape|size|dtype|device|tolist|numel|dim)\b|^(?:float|int|str|len|id|type)\(|\.detach\(\)\S*\.(?:mean|std|norm|sum|abs\(\)\.mean)\(/.test(
    value.text,
  );
}
