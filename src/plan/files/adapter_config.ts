/** PEFT's adapter_config.json. */
import { notAModel } from "../../model/errors/plan_errors.js";
import { type AdapterDetails, type ModulePath, modulePath } from "../blocks/adapter_details.js";
import type { PlanRequest } from "../defaults.js";
import type { ModelConfig } from "../shape/config.js";

/** @throws TidemarkError TM-E085 for an adapter that is not LoRA */
export function ofAdapter(config: ModelConfig): Partial<PlanRequest> {
  if (config.text("peft_type").toUpperCase() !== "LORA") {
    throw notAModel(config.source, `adapters of type ${config.text("peft_type")} are not planned`);
  }
  const unread: string[] = [];
  const targets = config.words("target_modules").map((name) => name.split(".").at(-1) ?? name);
  const all = config.text("target_modules") === "all-linear";
  const adapterDetails = detailsOf(config, unread);
  // PEFT matches a text as a regular expression. It comes with the adapter, so it is not run.
  if (!all && config.text("target_modules") !== "") {
    unread.push("target_modules as a regular expression (name the layers with --lora-targets)");
  }
  return {
    method: "lora",
    train: {
      adapterRank: config.size("r"),
      adapterDropout: config.fraction(0, "lora_dropout") > 0,
      adapterDetails,
      ...(all
        ? { adapterTargets: "all" as const }
        : targets.length > 0
          ? { adapterTargets: targets }
          : {}),
    },
    ...(unread.length === 0
      ? {}
      : { notes: [`${config.source} sets what the plan leaves out: ${unread.join("; ")}`] }),
  };
}

/** Modules that PEFT trains whole for a task of its own accord (peft/peft_model.py). */
const SAVED_FOR_TASK: Readonly<Record<string, readonly string[]>> = {
  SEQ_CLS: ["classifier", "score"],
  TOKEN_CLS: ["classifier", "score"],
  QUESTION_ANS: ["qa_outputs"],
};

/** @param unread gets what is not planned */
function detailsOf(config: ModelConfig, unread: string[]): AdapterDetails {
  const paths = (name: string, patterns: readonly string[]): ModulePath[] =>
    patterns.flatMap((pattern) => {
      const path = modulePath(pattern);
      if (path === null) {
        unread.push(`${name} "${pattern.slice(0, 60)}" (a regular expression)`);
      }
      return path === null ? [] : [path];
    });
  const ranks = config.part("rank_pattern");
  const exclude = config.text("exclude_modules");
  if (config.has("layers_pattern") && config.has("layers_to_transform")) {
    unread.push("layers_pattern (the plan takes the numbers of all layers)");
  }
  const bias = config.text("bias");
  return {
    modulesToSave: [
      ...new Set([
        ...config.words("modules_to_save"),
        ...(SAVED_FOR_TASK[config.text("task_type")] ?? []),
      ]),
    ],
    dora: config.flag(false, "use_dora"),
    ranks: Object.keys(ranks?.values ?? {})
      .slice(0, MOST_PATTERNS)
      .flatMap((pattern) =>
        paths("rank_pattern", [pattern]).map((path) => ({
          path,
          rank: (ranks as ModelConfig).size(pattern),
        })),
      ),
    layers: layersOf(config),
    exclude: paths("exclude_modules", [
      ...config.words("exclude_modules"),
      ...(exclude === "" ? [] : [exclude]),
    ]),
    parameters: paths("target_parameters", config.words("target_parameters")),
    tokens: tokensOf(config),
    adapterBias: config.flag(false, "lora_bias"),
    bias: bias === "all" || bias === "lora_only" ? bias : "none",
  };
}

const MOST_PATTERNS = 10_000;

/** A number, or a list of numbers. */
function layersOf(config: ModelConfig): readonly number[] | null {
  if (!config.has("layers_to_transform")) {
    return null;
  }
  return Array.isArray(config.values.layers_to_transform)
    ? config.sizes("layers_to_transform")
    : [config.count(0, "layers_to_transform")];
}

/** A list of tokens, or one for each table. */
function tokensOf(config: ModelConfig): number {
  const value = config.values.trainable_token_indices;
  const lists = Array.isArray(value)
    ? [value]
    : Object.values(config.part("trainable_token_indices")?.values ?? {});
  return Math.max(0, ...lists.map((list) => (Array.isArray(list) ? new Set(list).size : 0)));
}
