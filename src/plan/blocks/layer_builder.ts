/** Parameters and matrices of a layer, as the job's rules divide, quantize and train them. */

import { isKept } from "../shape/kept_modules.js";
import type { QuantizedWeights } from "../shape/model_shape.js";
import type { Parameter, Tensor } from "../tape/tape.js";
import { withAdapter } from "./adapter.js";
import type { AdapterDetails } from "./adapter_details.js";
import { isNamed, isSavedModule, layerOf, type ModulePlace, modulePaths } from "./adapter_names.js";
import type { BlockRules, Undivided } from "./rules.js";
import { matchesTarget } from "./target_names.js";
import { TensorOperations } from "./tensor_operations.js";

export interface LinearSketch {
  /** Name of the matrix, as adapters name their targets. */
  readonly name: string;
  readonly inputs: number;
  readonly outputs: number;
  readonly bias?: boolean;
  /** Outputs that have one; absent: all. */
  readonly biased?: number;
  /** How tensor parallelism divides it: by outputs, by inputs, or not. */
  readonly split?: "outputs" | "inputs";
  readonly group: "attention" | "mlp" | "router" | "other";
  /** A matrix for each of so many experts, of which this device holds its share; tokens are routed to them. */
  readonly experts?: number;
  /** Another use of a matrix: its gradient is added to that of the first. */
  readonly again?: boolean;
}

const FP32 = 4;
/** Of attention in vision towers with one matrix for queries, keys and values: adapters of the text do not match them. */
const VISION_NAMES: ReadonlySet<string> = new Set(["qkv", "proj"]);

interface StoredKeys {
  readonly key: Tensor;
  readonly value: Tensor;
}

export class LayerBuilder extends TensorOperations {
  #rules: BlockRules;

  /** Keys and values that later layers read, by the window of their layers. */
  readonly #keys = new Map<number, StoredKeys>();
  /** Rows that the embedding makes for all layers, of which each reads its own. */
  layerInputs: Tensor | null = null;
  /** Inputs and results of matrices are clamped. */
  clipsLinears = false;

  constructor(rules: BlockRules) {
    super(rules);
    this.#rules = rules;
  }

  override get rules(): BlockRules {
    return this.#rules;
  }

  /** Builds a part as tensor parallelism divides it. */
  divided<Made>(part: keyof Undivided, run: () => Made): Made {
    const before = this.#rules;
    const { undivided = {}, tensorParallel } = before;
    const how = undivided[part];
    if (how !== undefined) {
      const gathered = how === "gathered" ? tensorParallel : 1;
      this.#rules = { ...before, tensorParallel: 1, gathered };
    }
    const made = run();
    this.#rules = before;
    return made;
  }

  parameter(name: string, elements: number, role: Parameter["role"], rows = 0): Parameter {
    const bytes = elements * this.rules.weightBytes;
    const isSaved = this.#isSaved(name, role);
    return {
      name,
      elements,
      bytes,
      trainable: this.rules.training && (this.rules.trainBase || isSaved || this.#trainsBias(name)),
      quantized: false,
      role,
      rows,
      unit: this.tape.unit,
      ...(isSaved ? { originalBytes: bytes } : {}),
    };
  }

  /** A variable of the model's forward pass holds them. */
  storeKeys(window: number, { key, value }: StoredKeys): void {
    key.storage.held = true;
    value.storage.held = true;
    this.#keys.set(window, { key, value });
  }

  /** Of the layer before it that has stored those of its window; those of an earlier pipeline stage come from outside. */
  storedKeys(window: number, elements: number, itemBytes: number): StoredKeys {
    const stored = this.#keys.get(window);
    if (stored !== undefined) {
      return stored;
    }
    const received = (): Tensor => this.tape.input(elements, itemBytes, this.rules.training);
    const own = { key: received(), value: received() };
    this.storeKeys(window, own);
    return own;
  }

  /** Where the module is that is being built. */
  get place(): ModulePlace {
    return {
      family: this.rules.adapter?.family ?? "",
      unit: this.tape.units.at(-1)?.name ?? "",
    };
  }

  /** Whether PEFT trains a copy of it (modules_to_save). */
  #isSaved(name: string, role: Parameter["role"]): boolean {
    const saved = this.rules.adapter?.details.modulesToSave ?? [];
    if (saved.length === 0) {
      return false;
    }
    const unit = this.tape.unit;
    const norms = this.tape.parameters.filter(
      (each) => each.unit === unit && each.name === "norm.weight",
    ).length;
    return isSavedModule(saved, { name, role }, this.place, norms);
  }

  #trainsBias(name: string): boolean {
    return this.rules.adapter?.details.bias === "all" && name.endsWith(".bias");
  }

  /** y = x W + b, with its adapter where the job trains one. */
  linear(x: Tensor, sketch: LinearSketch): Tensor {
    if (!this.clipsLinears) {
      return this.#linear(x, sketch);
    }
    const made = this.#linear(this.pointwise("clamp", [x], [x]), sketch);
    return this.pointwise("clamp", [made], [made]);
  }

  #linear(x: Tensor, sketch: LinearSketch): Tensor {
    const { rules, tape } = this;
    const ranks = sketch.experts === undefined ? rules.tensorParallel : rules.experts.tensor;
    const parts = sketch.split === undefined ? 1 : ranks;
    const inputs = sketch.inputs / (sketch.split === "inputs" ? parts : 1);
    const outputs = sketch.outputs / (sketch.split === "outputs" ? parts : 1);
    const shared = sketch.experts === undefined ? (rules.gathered ?? 1) : 1;
    const parameters = this.#matrix(
      sketch,
      inputs / (sketch.split === "inputs" ? shared : 1),
      outputs / (sketch.split === "outputs" ? shared : 1),
    );
    const [matrix] = parameters as [Parameter];
    const quantized = matrix.quantized;
    const casts = rules.autocast && rules.computeBytes < FP32;
    // bitsandbytes computes in the compute type and returns the input's type (Linear4bit.forward).
    // The grouped product of all experts is not in autocast's list: it takes the type of the weights (integrations/moe.py).
    const productBytes = sketch.experts === undefined ? rules.computeBytes : rules.weightBytes;
    const itemBytes = casts && !quantized ? productBytes : x.itemBytes;
    const needsInput = this.needsGradient(matrix);
    const isMixed = quantized && isMixed8Bit(rules.quantization);
    const keepsInput = needsInput || (quantized && rules.quantizedKeepsInput) || isMixed;
    const castsInput = casts && x.itemBytes > itemBytes;
    const castsDown = quantized && x.itemBytes > rules.computeBytes;
    const oneMatrix = inputs * outputs * (isMixed ? x.itemBytes : rules.computeBytes);
    const copies = [
      ...(castsInput && needsInput ? [x.elements * itemBytes] : []),
      // autocast keeps its copy of a weight until the backward pass has used it.
      ...(casts && !quantized && rules.weightBytes > itemBytes
        ? [matrix.elements * itemBytes]
        : []),
    ];
    const [y] = tape.op({
      name: sketch.name,
      inputs: [x],
      makes: [{ elements: (x.elements / inputs) * outputs, itemBytes }],
      saves: keepsInput && !castsInput ? [x] : [],
      extraSaved: copies,
      parameters,
      outlivesCheckpoints: isMixed,
      forwardTemporary: isMixed
        ? mixedTemporary(x, inputs, outputs)
        : quantized
          ? oneMatrix +
            (castsDown ? (x.elements / inputs) * (inputs + outputs) * rules.computeBytes : 0)
          : castsInput && !needsInput
            ? x.elements * itemBytes
            : 0,
      backwardTemporary: quantized ? oneMatrix : 0,
      expensive: "matmul",
    });
    return this.#isTarget(sketch)
      ? withAdapter(this, [x, y as Tensor], sketch, { inputs, outputs })
      : (y as Tensor);
  }

  #matrix(sketch: LinearSketch, inputs: number, outputs: number): Parameter[] {
    const { rules } = this;
    const experts = Math.ceil(
      (sketch.experts ?? 1) / (sketch.experts === undefined ? 1 : rules.experts.devices),
    );
    const elements = inputs * outputs * experts;
    const { quantization } = rules;
    const quantizes =
      quantization !== null &&
      sketch.group !== "other" &&
      sketch.group !== "router" &&
      !this.#isKept(sketch, quantization);
    const mark = sketch.experts === undefined ? {} : { ofExperts: true };
    const matrix: Parameter = {
      ...this.parameter(sketch.name, elements, "matrix", outputs * experts),
      ...mark,
      ...(sketch.again === true ? { tied: true } : {}),
    };
    const stored: Parameter = quantizes
      ? {
          ...matrix,
          bytes:
            elements * quantization.bytesPerWeight + (quantization.bytesPerMatrix ?? 0) * experts,
          trainable: false,
          quantized: true,
        }
      : matrix;
    if (sketch.bias !== true) {
      return [stored];
    }
    const bias = {
      ...this.parameter(`${sketch.name}.bias`, (sketch.biased ?? outputs) * experts, "vector"),
      ...mark,
    };
    const isTrained = rules.adapter?.details.bias === "lora_only" && this.#isTarget(sketch);
    return [stored, isTrained ? { ...bias, trainable: true } : bias];
  }

  /** Whether a quantized checkpoint has the matrix in its own type. */
  #isKept({ name, group, experts }: LinearSketch, quantized: QuantizedWeights): boolean {
    if (quantized.expertsAlone === true) {
      return experts === undefined;
    }
    if (quantized.keepsExperts === true && experts !== undefined) {
      return true;
    }
    return (
      quantized.kept !== undefined &&
      isKept(
        quantized.kept,
        modulePaths(this.place, { name, group, isExpert: experts !== undefined }),
      )
    );
  }

  /** By layers_to_transform and exclude_modules. */
  #isLeftOut(name: string, { layers, exclude }: AdapterDetails): boolean {
    if (layers !== null) {
      const layer = layerOf(this.place);
      if (layer === null || !layers.includes(layer)) {
        return true;
      }
    }
    return exclude.length > 0 && isNamed(exclude, name, this.place);
  }

  #isTarget({ name, group, experts }: LinearSketch): boolean {
    const { adapter } = this.rules;
    if (adapter === null) {
      return false;
    }
    const { targets, details } = adapter;
    const { parameters } = details;
    if (experts !== undefined && parameters.length > 0 && isNamed(parameters, name, this.place)) {
      return true;
    }
    if (group === "router" || this.#isLeftOut(name, details)) {
      return false;
    }
    if (targets === "all") {
      // The experts of transformers 5 are one parameter of three dimensions, and no linear layers.
      return group !== "other" && experts === undefined;
    }
    return targets === "attention"
      ? group === "attention" && !VISION_NAMES.has(name)
      : targets.some((target) => matchesTarget(target, name, adapter.family));
  }

  /** @param rows of a matrix, which factored optimizers need; 0: a vector */
  adapterParameter(name: string, elements: number, rows: number, ofExperts = false): Parameter {
    return {
      name,
      elements,
      bytes: elements * (this.rules.adapter?.itemBytes ?? 0),
      trainable: true,
      quantized: false,
      role: "adapter",
      ofExperts,
      rows,
      unit: this.tape.unit,
    };
  }

  /** Under FSDP 1, gradients are those of flat parameters, also of frozen ones. */
  needsGradient({ trainable }: Parameter): boolean {
    return trainable || this.rules.flatGradients;
  }
}

/**
 * LLM.int8() of bitsandbytes: MatMul8bitLt returns its input's type, and keeps the input for the backward pass as an
 * attribute of its own, which checkpointing does not free (bitsandbytes/autograd/_functions.py, `ctx.tensors`).
 */
function isMixed8Bit(weights: QuantizedWeights | null): boolean {
  return weights?.dtype === "int8" && weights.keepsExperts === true;
}

/** The input in fp16 and in 8 bits, and the product in int32. */
function mixedTemporary(x: Tensor, inputs: number, outputs: number): number {
  return x.elements * 3 + (x.elements / inputs) * outputs * FP32;
}
