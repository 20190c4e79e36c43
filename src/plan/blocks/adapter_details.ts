/** What PEFT's adapter_config.json sets beside rank and targets, where it changes memory. */

/** A module by the end of its name: `v_proj`, `model.layers.1.self_attn.q_proj`. */
export interface ModulePath {
  /** The last part of the name. */
  readonly name: string;
  /** The layer, if the name has its number. */
  readonly layer?: number;
  /** The tower, if the name has it: `encoder`, `decoder`. */
  readonly tower?: string;
}

export interface AdapterDetails {
  /** Trained whole, as copies; the originals stay beside them. */
  readonly modulesToSave: readonly string[];
  /** A magnitude for each output (Liu et al., DoRA, 2024). */
  readonly dora: boolean;
  /** The first path that matches decides. */
  readonly ranks: readonly { readonly path: ModulePath; readonly rank: number }[];
  /** Layers with adapters; null: all. */
  readonly layers: readonly number[] | null;
  readonly exclude: readonly ModulePath[];
  /** Parameters of three dimensions (experts) that get an adapter for each of their matrices. */
  readonly parameters: readonly ModulePath[];
  /** Trained rows of the table of tokens. */
  readonly tokens: number;
  /** The second matrix of each adapter has a bias. */
  readonly adapterBias: boolean;
  /** Trained biases of the model: all, or those of layers with adapters. */
  readonly bias: "none" | "all" | "lora_only";
}

export const NO_DETAILS: AdapterDetails = {
  modulesToSave: [],
  dora: false,
  ranks: [],
  layers: null,
  exclude: [],
  parameters: [],
  tokens: 0,
  adapterBias: false,
  bias: "none",
};

/**
 * PEFT matches names with regular expressions (`(.*\.)?(PATTERN)$`). A configuration may come from anyone, so none is run:
 * plain names are read, with or without an escaped dot.
 * @returns null for any other expression
 */
export function modulePath(pattern: string): ModulePath | null {
  const plain = pattern
    .replace(/^\^/, "")
    .replace(/\$$/, "")
    .replace(/^\.\*\\?\.?/, "")
    .replaceAll("\\.", ".");
  const parts = plain.split(".");
  const name = parts.at(-1) ?? "";
  if (plain.length > 300 || !/^[\w.-]+$/.test(plain) || name === "") {
    return null;
  }
  const before = parts.slice(0, -1);
  const number = before.find((each) => /^\d{1,4}$/.test(each));
  const tower = before.find((each) => each === "encoder" || each === "decoder");
  return {
    name,
    ...(number === undefined ? {} : { layer: Number(number) }),
    // Decoders without an encoder may have this part in their names, too: OPT's model.decoder.layers.
    ...(tower === undefined ? {} : { tower }),
  };
}
