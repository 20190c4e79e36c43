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
};

/** Whether a target of an adapter names a layer of the planner. */
export function matchesTarget(target: string, name: string): boolean {
  return target === name || OTHER_NAMES[target]?.includes(name) === true;
}
