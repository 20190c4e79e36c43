/** Targets of adapters, by the names that families give their layers. */

/** Names of families whose layers the planner names like those of Llama. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  c_attn: ["qkv_proj"],
  query_key_value: ["qkv_proj"],
  Wqkv: ["qkv_proj"],
  c_proj: ["o_proj", "down_proj"],
  c_fc: ["up_proj"],
  out_proj: ["o_proj"],
  dense: ["o_proj"],
  dense_h_to_4h: ["up_proj"],
  dense_4h_to_h: ["down_proj"],
  fc1: ["up_proj"],
  fc2: ["down_proj"],
  query: ["q_proj"],
  key: ["k_proj"],
  value: ["v_proj"],
  q: ["q_proj"],
  k: ["k_proj"],
  v: ["v_proj"],
  o: ["o_proj"],
  q_lin: ["q_proj"],
  k_lin: ["k_proj"],
  v_lin: ["v_proj"],
  wi: ["up_proj"],
  wi_0: ["gate_proj"],
  wi_1: ["up_proj"],
  wo: ["down_proj"],
  gate_up_proj: ["gate_proj", "up_proj"],
  out_lin: ["o_proj"],
  lin1: ["up_proj"],
  lin2: ["down_proj"],
  Wo: ["o_proj", "down_proj"],
  Wi: ["gate_up_proj"],
  to_q: ["q_proj"],
  to_k: ["k_proj"],
  to_v: ["v_proj"],
  "to_out.0": ["o_proj"],
  "ff.net.0.proj": ["up_proj", "gate_up_proj"],
  "ff.net.2": ["down_proj"],
};

/** Families that call every linear layer beside queries, keys and values `dense`. */
const ALL_DENSE: ReadonlySet<string> = new Set([
  "bert",
  "roberta",
  "xlm-roberta",
  "camembert",
  "electra",
  "ernie",
  "deberta",
  "deberta-v2",
  "vit",
  "deit",
  "vit_mae",
  "vit_msn",
  "ijepa",
]);

/** Cross attention, and the several attentions of a layer of diffusers: PEFT compares the last part of a name. */
const PREFIX = /^(?:cross_|attn\d?\.)/;

/** Whether a target of an adapter names a layer of the planner. @param family `model_type` of the configuration */
export function matchesTarget(target: string, name: string, family: string): boolean {
  const last = name.replace(PREFIX, "");
  if (target === "dense" && ALL_DENSE.has(family)) {
    return ["o_proj", "up_proj", "down_proj", "dense"].includes(last);
  }
  return (
    target === last ||
    (Object.hasOwn(OTHER_NAMES, target) && OTHER_NAMES[target]?.includes(last) === true)
  );
}
