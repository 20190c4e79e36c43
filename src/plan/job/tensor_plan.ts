/**
 * What transformers divides over `--tp`: the matrices that `base_model_tp_plan` of a decoder's configuration names, its head,
 * and from 5.21 on its table of tokens if it is called `embed_tokens` (5.24: src/transformers/models, configuration files;
 * distributed/mixin.py, `init_parallel_plans`). Versions before 5.21 divide only tables that are tied to the head
 * (configuration_utils.py). Most plans name all matrices of attention and MLP. Others:
 *
 * | what is left whole | families |
 * |---|---|
 * | all but the table and the head | `TABLE_ALONE` |
 * | attention, MLP and shared experts | `EXPERTS_ALONE` |
 * | attention | deepseek_v3, youtu |
 * | states and convolutions, whose matrices are divided and whose results are gathered | qwen3_next, qwen3_5, qwen3_5_moe |
 * | shared experts | qwen2_moe |
 * | the results of divided matrices, which are gathered ("colwise_gather_output") | phi3, olmo2, olmo3, olmoe; of the MLP, glm |
 */
import type { Undivided } from "../blocks/rules.js";

const TABLE_ALONE = /^(?:bamba|falcon_h1|gpt_oss|hunyuan_v1_dense|lfm2|qwen3_vl(?:_text)?)$/;
const EXPERTS_ALONE = /^(?:granitemoe[a-z]*|jamba|phimoe|lfm2_moe|nemotron_h)$/;

const PLANS: readonly (readonly [RegExp, Undivided])[] = [
  [/^(?:deepseek_v3|youtu)$/, { attention: "whole" }],
  [/^qwen3_(?:next|5(?:_moe)?(?:_text)?)$/, { "state space": "gathered" }],
  [/^qwen2_moe$/, { "shared experts": "whole" }],
  [/^phi3$/, { attention: "gathered", MLP: "gathered" }],
  [/^olmo(?:[23]|e)$/, { attention: "gathered" }],
  [/^glm4?(?:v|6v)?$/, { MLP: "gathered" }],
];

/** Decoders that transformers 5.24 has no plan for (`base_model_tp_plan`). */
export const WITHOUT_PLAN =
  /^(?:gpt2|gpt_bigcode|opt|bloom|falcon|mpt|stablelm|(?:falcon_)?mamba|mamba2)$/;

/** Families whose table has another name than `embed_tokens`, so that each device has all of it: `embed_in`, `wte`. */
export function hasWholeTable(family: string): boolean {
  return /^(?:codegen|gpt_neox|gptj)$/.test(family);
}

/** Families whose plan names the table of tokens alone. */
export function dividesTableAlone(family: string): boolean {
  return TABLE_ALONE.test(family);
}

/** Towers before the decoder (images, speech) have no plan. */
export function undividedBy(family: string): Undivided {
  const tower = "whole";
  return TABLE_ALONE.test(family) || EXPERTS_ALONE.test(family)
    ? { tower, attention: tower, "state space": tower, MLP: tower, "shared experts": tower }
    : { tower, ...PLANS.find(([families]) => families.test(family))?.[1] };
}

/** "attention, MLP, shared experts": what each device has whole; "" for most families. */
export function wholeWords(family: string): string {
  const { tower: _tower, "state space": _state, ...parts } = undividedBy(family);
  return Object.entries(parts)
    .flatMap(([part, how]) => (how === "whole" ? part : []))
    .join(", ");
}
