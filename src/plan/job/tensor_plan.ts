/**
 * What transformers divides over `--tp` when it serves: the matrices that `base_model_tp_plan` of a decoder's configuration
 * names, its table of tokens and its head (5.24: src/transformers/models, configuration files; distributed/mixin.py,
 * `init_parallel_plans`). Most plans name all matrices of attention and MLP. Others:
 *
 * | what is left whole | families |
 * |---|---|
 * | all but the table and the head | `TABLE_ALONE` |
 * | attention, MLP and shared experts | jamba, phimoe, granitemoe, ... |
 * | attention | deepseek_v3, youtu, mistral4, ... |
 * | shared experts | qwen2_moe |
 * | the results of divided matrices, which are gathered ("colwise_gather_output") | phi3, olmo2, olmoe, glm, ... |
 */
import type { Undivided } from "../blocks/rules.js";

const TABLE_ALONE =
  /^(?:bamba|diffllama|emu3|falcon_h1|gpt_oss|hunyuan_v1_dense|lfm2|qwen3_vl)(?:_text)?$/;

const PLANS: readonly (readonly [RegExp, Undivided])[] = [
  [TABLE_ALONE, { attention: "whole", mlp: "whole", shared: "whole" }],
  [
    /^(?:afmoe|deepseek_v4|granitemoe(?:hybrid|shared)?|hunyuan_v1_moe|jamba|lfm2_moe|nemotron_h|phimoe)$/,
    { attention: "whole", mlp: "whole", shared: "whole" },
  ],
  [
    /^(?:axk1|bailing_hybrid|deepseek_v3|kimi_k2|kimi_linear|mistral4|sarvam_mla|youtu)$/,
    { attention: "whole" },
  ],
  [/^qwen2_moe$/, { shared: "whole" }],
  [/^phi3$/, { attention: "gathered", mlp: "gathered" }],
  [/^(?:flex_olmo|minimax_m2|olmo[23]|olmoe)$/, { attention: "gathered" }],
  [/^glm4?$/, { mlp: "gathered" }],
];

/** Families whose plan names the table of tokens alone. */
export function dividesTableAlone(family: string): boolean {
  return TABLE_ALONE.test(family);
}

/** Towers before the decoder (images, speech) have no plan. */
export function undividedBy(family: string): Undivided {
  const [, plan = {}] = PLANS.find(([families]) => families.test(family)) ?? [];
  return { ...plan, tower: "whole" };
}

/** "attention and shared experts": what each device has whole; "" for most families. */
export function wholeWords(family: string): string {
  const names = { attention: "attention", mlp: "MLP", shared: "shared experts" };
  const plan = undividedBy(family);
  const parts = (["attention", "mlp", "shared"] as const)
    .filter((part) => plan[part] === "whole")
    .map((part) => names[part]);
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}
