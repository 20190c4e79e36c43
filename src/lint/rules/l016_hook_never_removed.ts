import type { FileFacts } from "../flow/file_facts.js";
import type { Call } from "../scopes/module.js";
import { assignedTo, isDropped } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const hookNeverRemoved: Rule = {
  id: "TM-L016",
  name: "hook-never-removed",
  severity: "error",
  finds: "A PyTorch hook registered in each call, step or request whose handle is dropped.",
  why: "The module keeps every hook, with the variables that the hook captures; each forward pass runs all of them.",
  speed: "One hook for each call; each hook also slows down the forward pass.",
  before: `
import torch

def features(model, image):
    maps = []
    model.layer4.register_forward_hook(lambda m, i, o: maps.append(o.detach()))
    model(image)
    return maps
`,
  after: `
import torch

def features(model, image):
    maps = []
    handle = model.layer4.register_forward_hook(lambda m, i, o: maps.append(o.detach()))
    try:
        model(image)
    finally:
        handle.remove()
    return maps
`,
  ignore: "The function runs once for each model.",
  proof:
    "`tidemark heap PID --to function` shows the path `Module > _forward_hooks > OrderedDict`.",
  *check(file) {
    const calls = file.module.callsOf(
      ...["register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"],
      ...[
        "register_backward_hook",
        "register_full_backward_pre_hook",
        "register_module_forward_hook",
        "register_hook",
      ],
    );
    const removes = file.module.callsOf("remove").length > 0;
    for (const call of calls) {
      const repeat = file.repeats.of(call.node);
      const name = call.scope.functionAround?.name ?? "";
      const isOnce =
        /^(?:__init__|_?init\w*|_?setup\w*|_?register\w*|_?add_\w*|_?install\w*|_?attach\w*|build\w*|main|_?make_\w*|_?hook\w*|prepare\w*|enable\w*|_?apply\w*|__enter__|start\w*|wrap\w*)$/.test(
          name,
        );
      const target = assignedTo(call.node);
      const isLost =
        isDropped(call.node) || (target?.kind === "identifier" && !isRead(target, file));
      if (!isLost || (removes && !isDropped(call.node))) {
        continue;
      }
      // A hook on a tensor of the step is freed with the tensor.
      const isOnTensor = call.name === "register_hook";
      const isRepeated = repeat !== null && (repeat.origin !== "loop" || isOverData(repeat.node));
      if (!isOnTensor && (isRepeated || (!isOnce && runsModel(call, file)))) {
        yield {
          node: call.node,
          message: `${code(call.name)} adds a hook ${repeat?.text ?? `in each call of ${code(name)}`}, and its handle is dropped: nothing can remove it`,
        };
      }
    }
  },
};

function isRead(target: SyntaxNode, file: FileFacts): boolean {
  const slot = file.slots.of(target);
  return slot !== null && file.slots.references(slot).some((node) => node !== target);
}

/** `for batch in loader`, `for epoch in range(epochs)`: not once for each layer. */
function isOverData(loop: SyntaxNode): boolean {
  const text = `${loop.child("left")?.text} ${loop.child("right")?.text}`;
  return (
    loop.kind === "for_statement" &&
    /loader|batch|epoch|data|step|image|sample|request|input|range\(|frames|texts|prompts/i.test(
      text,
    ) &&
    !/modules|children|layers|blocks|named_/.test(text)
  );
}

/** The function registers the hook for one forward pass: `model(image)`. */
function runsModel(call: Call, file: FileFacts): boolean {
  const root = /^\w+(?:\.model\b)?/.exec(call.receiver?.text ?? "")?.[0];
  const calls =
    root === undefined ? [] : file.module.callsOf(root.slice(root.lastIndexOf(".") + 1), "forward");
  return (
    !isModuleMethod(call, file) &&
    calls.some(
      ({ node, scope, callee }) =>
        scope === call.scope &&
        node.start > call.node.start &&
        (callee.text === root || callee.text.startsWith(`${root}.forward`)),
    )
  );
}

function isModuleMethod(call: Call, file: FileFacts): boolean {
  const owner = call.scope.methodOf;
  return owner !== null && file.tensors.isModuleClass(owner) && call.scope.name !== "forward";
}
