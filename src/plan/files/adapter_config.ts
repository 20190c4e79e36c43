/** PEFT's adapter_config.json. */
import { notAModel } from "../../model/errors/plan_errors.js";
import type { PlanRequest } from "../defaults.js";
import type { ModelConfig } from "../shape/config.js";

/** @throws TidemarkError TM-E085 for an adapter that is not LoRA */
export function ofAdapter(config: ModelConfig): Partial<PlanRequest> {
  if (config.text("peft_type").toUpperCase() !== "LORA") {
    throw notAModel(config.source, `adapters of type ${config.text("peft_type")} are not planned`);
  }
  const targets = config.words("target_modules").map((name) => name.split(".").at(-1) ?? name);
  const all = config.text("target_modules") === "all-linear";
  const ignored = ignoredSettings(config);
  return {
    method: "lora",
    train: {
      adapterRank: config.size("r"),
      adapterDropout: config.fraction(0, "lora_dropout") > 0,
      ...(all
        ? { adapterTargets: "all" as const }
        : targets.length > 0
          ? { adapterTargets: targets }
          : {}),
    },
    ...(ignored.length === 0
      ? {}
      : { notes: [`${config.source} sets what the plan leaves out: ${ignored.join("; ")}`] }),
  };
}

/** Settings that change the memory of an adapter, and what each does to it. */
const IGNORED: Readonly<Record<string, string>> = {
  modules_to_save: "each named module is trained whole, with gradients and optimizer states",
  use_dora: "a magnitude vector and temporary weights for each matrix",
  rank_pattern: "other ranks for some matrices",
  layers_to_transform: "fewer layers have adapters",
  exclude_modules: "fewer matrices have adapters",
  target_parameters: "adapters on parameters of other layers",
  trainable_token_indices: "trained rows of the embedding",
};

function ignoredSettings(config: ModelConfig): string[] {
  const set = Object.entries(IGNORED).flatMap(([name, effect]) =>
    isSet(config.values[name]) ? [`${name} (${effect})`] : [],
  );
  const targets = config.text("target_modules");
  // PEFT matches a text as a regular expression. It comes with the adapter, so it is not run.
  return targets === "" || targets === "all-linear"
    ? set
    : [...set, "target_modules as a regular expression (name the layers with --lora-targets)"];
}

function isSet(value: unknown): boolean {
  return typeof value === "object" && value !== null
    ? Object.keys(value).length > 0
    : value !== undefined && value !== null && value !== false && value !== "";
}
