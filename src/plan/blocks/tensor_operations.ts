/**
 * The operations without parameters that all blocks are made of, with what PyTorch saves of each for the backward pass
 * (PyTorch, tools/autograd/derivatives.yaml; torch/amp for what autocast copies).
 */
import type { Activation } from "../shape/model_shape.js";
import { Tape, type Tensor } from "../tape/tape.js";
import type { BlockRules } from "./rules.js";

const FP32 = 4;

export abstract class TensorOperations {
  readonly tape: Tape;

  constructor({ compiled, training }: BlockRules) {
    this.tape = new Tape(compiled, training);
  }

  abstract get rules(): BlockRules;

  /** Makes a tensor like the first input. */
  pointwise(
    name: string,
    inputs: readonly Tensor[],
    saves: readonly (Tensor | "output")[],
  ): Tensor {
    const [like] = inputs as [Tensor];
    const itemBytes = Math.max(...inputs.map((input) => input.itemBytes));
    const elements = Math.max(...inputs.map((input) => input.elements));
    const [made] = this.tape.op({
      name,
      inputs,
      makes: [{ elements: Math.max(elements, like.elements), itemBytes }],
      saves,
      pointwise: true,
    });
    return made as Tensor;
  }

  /** a + b: the gradient of both is that of the sum. */
  add(a: Tensor, b: Tensor): Tensor {
    const [sum] = this.tape.op({
      name: "add",
      inputs: [a, b],
      makes: [
        {
          elements: Math.max(a.elements, b.elements),
          itemBytes: Math.max(a.itemBytes, b.itemBytes),
        },
      ],
      passesGradient: true,
    });
    return sum as Tensor;
  }

  /** `x` if it has this type. */
  cast(x: Tensor, itemBytes: number): Tensor {
    if (x.itemBytes === itemBytes) {
      return x;
    }
    const [made] = this.tape.op({
      name: "cast",
      inputs: [x],
      makes: [{ elements: x.elements, itemBytes }],
      pointwise: true,
    });
    return made as Tensor;
  }

  /** A copy with another layout (contiguous(), cat). */
  copy(x: Tensor, elements = x.elements): Tensor {
    const [made] = this.tape.op({
      name: "copy",
      inputs: [x],
      makes: [{ elements, itemBytes: x.itemBytes }],
      pointwise: true,
    });
    return made as Tensor;
  }

  /** cat: one tensor with the elements of all. */
  join(all: readonly Tensor[]): Tensor {
    const [made] = this.tape.op({
      name: "cat",
      inputs: all,
      makes: [
        {
          elements: all.reduce((sum, { elements }) => sum + elements, 0),
          itemBytes: Math.max(...all.map(({ itemBytes }) => itemBytes)),
        },
      ],
      pointwise: true,
    });
    return made as Tensor;
  }

  /**
   * Sequence parallelism (Korthikanti et al. 2022, section 4.2.2): all tokens before a divided matrix, this rank's share
   * after it. Each is the identity without it.
   */
  gather(x: Tensor): Tensor {
    return this.rules.sequenceParallel
      ? this.#resized("all_gather", x, x.elements * this.rules.tensorParallel)
      : x;
  }

  scatter(x: Tensor): Tensor {
    return this.rules.sequenceParallel
      ? this.#resized("reduce_scatter", x, x.elements / this.rules.tensorParallel)
      : x;
  }

  #resized(name: string, x: Tensor, elements: number): Tensor {
    const [made] = this.tape.op({
      name,
      inputs: [x],
      makes: [{ elements, itemBytes: x.itemBytes }],
    });
    return made as Tensor;
  }

  /** A variable of Python holds `x` up to here, although no operation reads it any more. */
  release(x: Tensor): void {
    this.tape.op({ name: "release", inputs: [x], makes: [] });
  }

  /** native_dropout keeps one byte an element; on the CPU, the factors have the input's type. */
  dropout(x: Tensor): Tensor {
    const [made] = this.tape.op({
      name: "dropout",
      inputs: [x],
      makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
      extraSaved: this.rules.compiled ? [] : [x.elements * (this.rules.onCpu ? x.itemBytes : 1)],
      pointwise: true,
    });
    return made as Tensor;
  }

  activation(x: Tensor, kind: Activation): Tensor {
    switch (kind) {
      case "relu":
        return this.pointwise("relu", [x], ["output"]);
      case "relu2": {
        const positive = this.pointwise("relu", [x], ["output"]);
        return this.pointwise("square", [positive], [positive]);
      }
      case "quick_gelu": {
        // x * sigmoid(1.702 x)
        const gate = this.pointwise("sigmoid", [this.pointwise("scale", [x], [])], ["output"]);
        return this.pointwise("mul", [x, gate], [x, gate]);
      }
      case "gelu_python":
        return this.rules.fusedGelu ? this.pointwise("gelu", [x], [x]) : this.#geluOfParts(x);
      default:
        return this.pointwise(kind, [x], [x]);
    }
  }

  /** NewGELUActivation of transformers: 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), one kernel for each operation. */
  #geluOfParts(x: Tensor): Tensor {
    // autocast computes powers in fp32, and what follows is as wide.
    const base = this.rules.autocast ? this.cast(x, FP32) : x;
    const cube = this.pointwise("pow", [base], [base]);
    const inner = this.add(x, this.pointwise("scale", [cube], []));
    const tanh = this.pointwise("tanh", [this.pointwise("scale", [inner], [])], ["output"]);
    const half = this.pointwise("scale", [x], []);
    const onePlus = this.pointwise("add", [tanh], []);
    const made = this.pointwise("mul", [half, onePlus], [half, onePlus]);
    this.release(x);
    return made;
  }
}
