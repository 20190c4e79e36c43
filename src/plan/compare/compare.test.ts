import { describe, expect, it } from "vitest";
import { planMemory } from "../plan.js";
import { readShape } from "../shape/read_shape.js";
import { comparePlan } from "./compare.js";

const model = readShape(
  {
    model_type: "llama",
    hidden_size: 1024,
    intermediate_size: 4096,
    num_hidden_layers: 8,
    num_attention_heads: 16,
    vocab_size: 32000,
  },
  "m",
  "config.json",
);
const plan = planMemory(model, { mode: "train" });
const bytesOf = (name: string): number => plan.parts.find(({ part }) => part === name)?.bytes ?? 0;
const compared = (categories: Record<string, number>): string => {
  const bytes = Object.values(categories).reduce((sum, each) => sum + each, 0);
  const measured = { file: "f", kind: "allocated", bytes } as const;
  return comparePlan(plan, { ...measured, categories: new Map(Object.entries(categories)) })
    .explanation;
};

describe("memory that was allocated before a snapshot's history began", () => {
  const activations = bytesOf("activations") + bytesOf("head and loss") + bytesOf("temporaries");

  it("is named where weights were measured as other", () => {
    const words = compared({
      activations,
      "optimizer state": bytesOf("optimizer"),
      gradients: bytesOf("gradients"),
      other: bytesOf("weights") + bytesOf("workspace"),
    });
    expect(words).toMatch(/planned as weights was measured as other; .* before the history began/);
  });

  it("is named where other has more than the weights that are missing", () => {
    const words = compared({ activations, other: 20 * bytesOf("weights") });
    expect(words).toMatch(/^other: .* no (?=.*weights).* measured; .* before the history began/);
    expect(words).not.toMatch(/lack as much/);
  });

  it("is confirmed where the other parts lack as much", () => {
    const words = compared({
      activations: 0.9 * activations,
      other: 0.1 * activations + bytesOf("weights") + bytesOf("optimizer") + bytesOf("gradients"),
    });
    expect(words).toMatch(/^other: .* before the history began, .*; the other parts lack as much/);
  });
});
