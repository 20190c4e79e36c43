/** Finds the PyTorch values that carry an autograd graph. */
import type { Module } from "../scopes/module.js";
import type { Names } from "../scopes/names.js";
import type { Scope } from "../scopes/scope.js";
import { argumentsOf, bare, within } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";

const DETACHING =
  /^(?:item|detach|detach_|tolist|numpy|argmax|argmin|bool|int|long|eq|ne|lt|gt|le|ge|size|dim|numel|nonzero|topk_indices|any|all|isnan|shape|data_ptr|generate|decode|batch_decode)$/;
const DETACHING_FUNCTIONS =
  /^(?:float|int|bool|len|str|repr|round|format|detach|to_numpy|tensor2np)$/;
const MODEL_NAMES =
  /^(?:self\.)?_?(?:model|net|network|criterion|loss_fn|loss_func|lossfn|objective|encoder|decoder|generator|discriminator|backbone|policy|actor|critic|classifier|module|forward|llm|transformer|resnet|unet|student|teacher|ddp_model|policy_net|[a-z_]*_(?:model|net|loss|criterion))$|loss(?:_fn)?$/i;
const LIGHTNING_STEPS = /^training_step$/;
const NO_GRAD_STEPS = /^(?:validation_step|test_step|predict_step)$/;
const NO_GRAD = /(?:^|\.)(?:no_grad|inference_mode|set_grad_enabled)$/;

/**
 * `load_model`, `self._resolve_model`: a name with a verb before "model" is a function that works on a model, not a
 * model.
 */
export function isVerb(callee: string): boolean {
  return /(?:^|[._])(?:get|load|unload|create|build|set|update|make|save|delete|download|init|register|compile|export|check|run|train|fit|find|list|wrap|convert|resolve|select|choose|pick|fetch|parse|describe|validate|clone|copy|prepare|test)_/.test(
    callee,
  );
}

export class Tensors {
  readonly #losses = new Map<Scope, Set<string>>();
  #usesTorch: boolean | null = null;

  constructor(
    readonly module: Module,
    readonly names: Names,
  ) {}

  /** Whether the file imports PyTorch or a library that trains with it. */
  get usesTorch(): boolean {
    this.#usesTorch ??= this.#imports(
      /^(?:torch|torchvision|lightning|pytorch_lightning|accelerate|ignite|fastai|transformers|timm|deepspeed|sentence_transformers|diffusers|peft)\b/,
    );
    return this.#usesTorch;
  }

  #imports(pattern: RegExp): boolean {
    const scopes = [this.module.root, ...this.module.functions];
    return scopes.some((scope) =>
      [...scope.writes.values()].some((writes) =>
        writes.some(({ imported }) => imported !== undefined && pattern.test(imported)),
      ),
    );
  }

  /** Names of a function's variables on which `backward` is called, directly or through a scaler or accelerator. */
  lossesOf(scope: Scope): Set<string> {
    const known = this.#losses.get(scope);
    if (known !== undefined) {
      return known;
    }
    const names = new Set<string>();
    for (const call of this.module.callsOf("backward", "manual_backward")) {
      if (call.scope !== scope) {
        continue;
      }
      const sources = [call.receiver, ...argumentsOf(call.node)].filter((node) => node !== null);
      for (const source of sources) {
        for (const name of within(source, "identifier")) {
          names.add(name.text);
        }
      }
    }
    for (const name of ["self", "scaler", "accelerator", "fabric", "torch", "True"]) {
      names.delete(name);
    }
    this.#losses.set(scope, names);
    return names;
  }

  /** Whether a function computes gradients. */
  trains(scope: Scope): boolean {
    return this.lossesOf(scope).size > 0 || LIGHTNING_STEPS.test(scope.name);
  }

  /** Whether gradients are off here: by a `with`, a decorator, or the framework that calls the method. */
  isWithoutGradients(node: SyntaxNode): boolean {
    for (let outer = node.parent; outer !== null; outer = outer.parent) {
      if (outer.kind === "with_statement" && this.#turnsOff(outer.children[0])) {
        return true;
      }
      const scope = this.module.scopeOpenedBy(outer);
      if (scope !== undefined && scope.kind !== "module") {
        const isDecorated = scope.decorators.some((decorator) => this.#isNoGrad(decorator));
        if (isDecorated || NO_GRAD_STEPS.test(scope.name)) {
          return true;
        }
      }
    }
    return this.module
      .callsOf("set_grad_enabled", "enable_grad", "no_grad", "inference_mode")
      .some(
        ({ node: call, name, scope }) =>
          name === "set_grad_enabled" &&
          argumentsOf(call)[0]?.text === "False" &&
          (scope === this.module.root || scope === this.module.scopeOf(node)),
      );
  }

  #turnsOff(clause: SyntaxNode | undefined): boolean {
    return (
      clause !== undefined &&
      [...within(clause, "call")].some((call) => this.#isNoGrad(call.child("function") ?? call)) // with torch.no_grad():
    );
  }

  #isNoGrad(node: SyntaxNode): boolean {
    const callee = node.kind === "call" ? (node.child("function") ?? node) : node;
    return NO_GRAD.test(this.names.resolve(callee) ?? callee.text);
  }

  /** Whether a value carries a graph, in a function that trains. */
  carriesGraph(node: SyntaxNode, scope: Scope, depth = 0): boolean {
    const value = bare(node);
    if (depth > 6) {
      return false;
    }
    const below = (child: SyntaxNode | null) =>
      child !== null && this.carriesGraph(child, scope, depth + 1);
    switch (value.kind) {
      case "identifier":
        return this.#variableCarries(value, scope, depth);
      case "attribute":
        return !/^(?:data|shape|device|dtype|size|T_size|grad)$/.test(
          value.child("attribute")?.text ?? "",
        ) && value.child("object")?.text !== "self"
          ? below(value.child("object"))
          : false;
      case "subscript":
        return below(value.child("value"));
      case "binary_operator":
      case "unary_operator":
        return value.children.some(below);
      case "tuple":
      case "list":
      case "expression_list":
        return value.children.some(below);
      case "dictionary":
        return value.children.some((pair) => below(pair.child("value")));
      case "call":
        return this.#callCarries(value, scope, depth);
      default:
        return false;
    }
  }

  #variableCarries(name: SyntaxNode, scope: Scope, depth: number): boolean {
    const writes = this.names.writesOf(name);
    const values = writes.flatMap(({ value, kind }) =>
      value !== null && (kind === "assign" || kind === "unpack") ? [value] : [],
    );
    // `loss = loss.item()` after the step: whether it carries a graph depends on the place, so nothing is reported.
    if (values.some((value) => isDetached(value))) {
      return false;
    }
    if (this.lossesOf(scope).has(name.text)) {
      return true;
    }
    return values.some((value) => this.carriesGraph(value, scope, depth + 1));
  }

  #callCarries(call: SyntaxNode, scope: Scope, depth: number): boolean {
    const callee = call.child("function");
    if (callee === null || isDetached(call) || this.isWithoutGradients(call)) {
      return false;
    }
    const resolved = this.names.resolve(callee) ?? "";
    if (/^torch\.nn\.functional\.(?!one_hot)\w+$/.test(resolved) || this.isModel(callee)) {
      return true;
    }
    if (callee.kind === "attribute") {
      const object = callee.child("object");
      if (object !== null && this.carriesGraph(object, scope, depth + 1)) {
        return true;
      }
    }
    return (
      /^torch\.(?:stack|cat|mean|sum|add|mul|sub|div|exp|log|sqrt|norm|abs|clamp|softmax)$/.test(
        resolved,
      ) && argumentsOf(call).some((argument) => this.carriesGraph(argument, scope, depth + 1))
    );
  }

  /** Whether a callee is a module of PyTorch, by its class or by its name. */
  isModel(callee: SyntaxNode): boolean {
    const made = this.names.constructorOf(callee) ?? "";
    if (/^torch\.nn\.(?!functional|init|utils)\w+/.test(made)) {
      return true;
    }
    const owner = this.names.classOf(callee);
    if (owner !== null && this.isModuleClass(owner)) {
      return true;
    }
    if (isVerb(callee.text)) {
      return false;
    }
    return MODEL_NAMES.test(callee.text) && this.names.functionNamed(callee)?.isGenerator !== true;
  }

  isModuleClass(owner: Scope): boolean {
    return this.names
      .baseNames(owner)
      .some((base) => /(?:^|\.)(?:Module|LightningModule|PreTrainedModel)$/.test(base));
  }
}

/** `.item()`, `.detach()`, `float(...)`, also inside calls that keep their argument: `loss.detach().cpu()`. */
export function isDetached(node: SyntaxNode): boolean {
  const value = bare(node);
  if (value.kind === "call") {
    const callee = value.child("function");
    if (callee?.kind === "identifier") {
      return DETACHING_FUNCTIONS.test(callee.text);
    }
    if (callee?.kind === "attribute") {
      if (DETACHING.test(callee.child("attribute")?.text ?? "")) {
        return true;
      }
      const object = callee.child("object");
      return object !== null && isDetached(object);
    }
  }
  if (value.kind === "attribute") {
    const object = value.child("object");
    return value.child("attribute")?.text === "data" || (object !== null && isDetached(object));
  }
  return value.kind === "subscript" &&
    isDetached(value.child("value") ?? value.children[0] ?? value)
    ? value.child("value") !== null
    : false;
}
