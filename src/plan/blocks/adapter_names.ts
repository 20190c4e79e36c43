/** Which modules of a layer the details of an adapter name. */

import type { Parameter } from "../tape/tape.js";
import type { ModulePath } from "./adapter_details.js";
import { matchesTarget } from "./target_names.js";

/** Where a module is: "decoder.12", "encoder.embedding". */
export interface ModulePlace {
  readonly family: string;
  readonly unit: string;
}

/** Number of the layer; null outside of layers. */
export function layerOf({ unit }: ModulePlace): number | null {
  const [, index] = /\.(\d+)$/.exec(unit) ?? [];
  return index === undefined ? null : Number(index);
}

export function isNamed(paths: readonly ModulePath[], name: string, place: ModulePlace): boolean {
  return paths.some((path) => isAt(path, name, place));
}

export function isAt(path: ModulePath, name: string, place: ModulePlace): boolean {
  return (
    (path.layer === undefined || path.layer === layerOf(place)) &&
    (path.tower === undefined || place.unit.startsWith(`${path.tower}.`)) &&
    matchesTarget(path.name, name, place.family)
  );
}

const HEADS: ReadonlySet<string> = new Set([
  "lm_head",
  "embed_out",
  "output",
  "score",
  "classifier",
  "classification_head",
  "qa_outputs",
  "cls",
]);
const TABLES: ReadonlySet<string> = new Set([
  "embed_tokens",
  "wte",
  "word_embeddings",
  "embed_in",
  "shared",
  "embeddings",
  "tok_embeddings",
]);
/** Norms of a layer in their order. */
const LAYER_NORMS = ["input_layernorm", "post_attention_layernorm"];

/** Whether a name is that of the table of tokens. */
export function isTokenTable(name: string): boolean {
  return TABLES.has(name);
}

/**
 * Whether one of `modules_to_save` names a parameter of the planner. PEFT compares the end of a module's name, so that
 * `norm` names all norms. @param normsBefore norms of this layer before this one
 */
export function isSavedModule(
  saved: readonly string[],
  { name, role }: Pick<Parameter, "name" | "role">,
  place: ModulePlace,
  normsBefore: number,
): boolean {
  const module = name.replace(/\.(?:weight|bias)$/, "");
  return saved.some((each) => {
    const last = each.split(".").at(-1) ?? each;
    if (module === "lm_head") {
      return HEADS.has(last);
    }
    if (role === "embedding") {
      return last === module || (TABLES.has(last) && TABLES.has(module));
    }
    if (/norm$/.test(module)) {
      return (
        module.endsWith(last) ||
        (layerOf(place) !== null && module === "norm" && LAYER_NORMS.indexOf(last) === normsBefore)
      );
    }
    return matchesTarget(last, module, place.family);
  });
}

const PARTS_OF_FUSED: Readonly<Record<string, readonly string[]>> = {
  qkv_proj: ["q_proj", "k_proj", "v_proj"],
  gate_up_proj: ["gate_proj", "up_proj"],
};

/** A matrix by the names that checkpoints give it, from the model's root. Towers before the last one read images. */
export function modulePaths(
  place: ModulePlace,
  { name, group, isExpert }: { name: string; group: string; isExpert: boolean },
): string[] {
  const layer = layerOf(place);
  const [tower = ""] = place.unit.split(".");
  const roots =
    tower === "decoder"
      ? ["model.layers", "model.language_model.layers", "language_model.model.layers"]
      : tower === "encoder"
        ? ["model.encoder.layers", "encoder.layer"]
        : ["visual.blocks", "vision_tower.layers", "vision_model.layers", "model.visual.blocks"];
  const inside =
    group === "attention"
      ? ["self_attn", "attention"]
      : isExpert
        ? ["mlp.experts", "block_sparse_moe.experts", "feed_forward.experts"]
        : ["mlp", "feed_forward"];
  const names = [name, ...(PARTS_OF_FUSED[name] ?? [])];
  return layer === null
    ? names
    : roots.flatMap((root) =>
        inside.flatMap((part) => names.map((each) => `${root}.${layer}.${part}.${each}`)),
      );
}
