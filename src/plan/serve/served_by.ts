/**
 * What each engine serves. transformers runs every class in one pass or token by token; others generate text with decoders,
 * and run some encoders for embeddings.
 *
 * | model | vllm | sglang | tgi | llama.cpp |
 * |---|---|---|---|---|
 * | decoders, also with images or state spaces | yes | yes | yes | yes |
 * | T5, and what is built like it | no | no | yes | T5 |
 * | Whisper | yes | yes | no | no |
 * | encoders of text | those of BERT's kind, for embeddings | the same | no | the same |
 * | CLIP, SigLIP | for embeddings | CLIP | no | no |
 * | image classifiers, UNets, DiT, speech without text (Wav2Vec2) | no | no | no | no |
 *
 * Sources: the lists of supported models in the documentation of vLLM, SGLang and TGI; llama-arch.cpp of llama.cpp.
 */
import { cannotDivide } from "../../model/errors/plan_errors.js";
import { readsEncoder } from "../blocks/model_tape.js";
import type { Engine, ServeOptions } from "../job/options.js";
import { dividesTableAlone, WITHOUT_PLAN } from "../job/tensor_plan.js";
import { readsText } from "../shape/layers.js";
import type { ModelShape } from "../shape/model_shape.js";
import { NO_HEAD } from "../shape/parts.js";
import { cachedTower } from "./attention_cache.js";

type Kind =
  | "decoder"
  | "text to text"
  | "speech to text"
  | "text encoder"
  | "speech encoder"
  | "two towers"
  | "image";

function kindOf(model: ModelShape): Kind {
  const { towers, head } = model;
  const last = towers.at(-1);
  if (last !== undefined && readsEncoder(last) && towers.length > 1) {
    return towers.at(-2)?.positions === "sequence" ? "text to text" : "speech to text";
  }
  if (head.kind === "pairs") {
    return "two towers";
  }
  if (!readsText(model)) {
    return "image";
  }
  if (last?.layers.some(({ layer }) => layer.kind === "frames") === true) {
    return "speech encoder";
  }
  return isEncoder(model) ? "text encoder" : "decoder";
}

/** Whether each position sees all others, so that nothing is generated. */
function isEncoder(model: ModelShape): boolean {
  const layers = model.towers.at(-1)?.layers ?? [];
  return layers.every(
    ({ layer }) => layer.kind === "transformer" && layer.attention?.bidirectional === true,
  );
}

const BERT_KIND = /^(?:bert|roberta|xlm-roberta|modernbert|nomic_bert|camembert)$/;

const SERVED: Readonly<
  Record<Exclude<Engine, "transformers">, (kind: Kind, family: string) => boolean>
> = {
  vllm: (kind, family) =>
    kind === "decoder" ||
    kind === "speech to text" ||
    (kind === "two towers" && /^(?:clip|siglip)$/.test(family)) ||
    (kind === "text encoder" && BERT_KIND.test(family)),
  sglang: (kind, family) =>
    kind === "decoder" ||
    kind === "speech to text" ||
    (kind === "two towers" && family === "clip") ||
    (kind === "text encoder" && BERT_KIND.test(family)),
  tgi: (kind) => kind === "decoder" || kind === "text to text",
  "llama.cpp": (kind, family) =>
    kind === "decoder" ||
    (kind === "text to text" && /^(?:u?m?t5)$/.test(family)) ||
    (kind === "text encoder" && (BERT_KIND.test(family) || family === "distilbert")),
};

const WORDS: Readonly<Record<Kind, string>> = {
  decoder: "a decoder",
  "text to text": "an encoder and a decoder",
  "speech to text": "speech recognition",
  "text encoder": "an encoder of text",
  "speech encoder": "an encoder of speech",
  "two towers": "an encoder of text and images",
  image: "a model of images",
};

/** @throws TidemarkError TM-E086 for a model that the engine does not load */
export function requireServed(model: ModelShape, { engine }: ServeOptions): void {
  const kind = kindOf(model);
  if (engine === "transformers" || SERVED[engine](kind, model.family)) {
    return;
  }
  const others = (Object.keys(SERVED) as (keyof typeof SERVED)[]).filter((other) =>
    SERVED[other](kind, model.family),
  );
  throw cannotDivide(
    `${engine} does not serve ${model.family === "" ? "this model" : model.family}, ${WORDS[kind]}`,
    `use --engine ${["transformers", ...others].join(" or ")}`,
  );
}

/**
 * transformers divides decoders whose configuration has a plan; TGI divides T5 of all encoder-decoders.
 * @throws TidemarkError TM-E086 for a model that the engine does not divide
 */
export function requireTensorParallel(
  model: ModelShape,
  { engine, tensor, expert }: ServeOptions,
): void {
  const kind = kindOf(model);
  const hasNone =
    engine === "transformers"
      ? kind !== "decoder" ||
        !hasAttention(model) ||
        WITHOUT_PLAN.test(model.family) ||
        (dividesTableAlone(model.family) && expert === 1)
      : engine === "tgi" && kind === "text to text" && model.family !== "t5";
  if (tensor === 1 || !hasNone) {
    return;
  }
  // Classes of diffusers have names in capitals.
  const library = /^[a-z]/.test(model.family) ? engine : "diffusers";
  const others = ENGINES_OF_MANY.filter((other) => SERVED[other](kind, model.family));
  throw cannotDivide(
    `${library} has no tensor parallelism for ${model.family === "" ? "this model" : model.family}, ${WORDS[kind]}`,
    others.length === 0
      ? "leave --tp out"
      : `leave --tp out, or use --engine ${others.join(" or ")}`,
  );
}

const ENGINES_OF_MANY = ["vllm", "sglang"] as const;

/** text-generation-inference has shards (`--num-shard`) and no stages. */
export function hasPipeline(engine: Engine): boolean {
  return engine !== "tgi";
}

/** How engines that divide either layers or tensors are told which; those absent divide both at once. */
const EITHER: Readonly<Partial<Record<Engine, string>>> = {
  transformers: "tp_plan and device_map of from_pretrained are mutually exclusive",
  "llama.cpp": "--split-mode is layer, row or tensor",
};

/** @throws TidemarkError TM-E086 for a pipeline that the engine does not have, or not beside tensor parallelism */
export function requirePipeline({ engine, tensor, pipeline }: ServeOptions): void {
  if (pipeline === 1) {
    return;
  }
  if (!hasPipeline(engine)) {
    throw cannotDivide(
      `${engine} has no pipeline parallelism`,
      `use --tp ${tensor * pipeline} instead of --pp ${pipeline}, or --engine ${ENGINES_OF_MANY.join(" or ")}`,
    );
  }
  const either = EITHER[engine];
  if (tensor > 1 && either !== undefined) {
    throw cannotDivide(
      `${engine} divides a model by layers or by tensors, not by both: ${either}`,
      `use --tp or --pp alone, or --engine ${ENGINES_OF_MANY.join(" or ")}`,
    );
  }
}

function hasAttention({ towers }: ModelShape): boolean {
  return (towers.at(-1)?.layers ?? []).some(
    ({ layer }) => layer.kind === "transformer" && layer.attention !== null,
  );
}

/** Whether fp8 of the engines quantizes its weights: linear layers of text, and not the mixers of state spaces. */
export function hasFp8Weights(model: ModelShape): boolean {
  return readsText(model) && model.head.kind !== "pairs" && hasAttention(model);
}

/** What is loaded: engines run an encoder of text for embeddings, without the head that fills masked tokens. */
export function servedShape(model: ModelShape, { engine }: ServeOptions): ModelShape {
  return engine !== "transformers" &&
    model.head.kind === "language" &&
    kindOf(model) === "text encoder"
    ? { ...model, head: NO_HEAD }
    : model;
}

/**
 * Whether the engine gives its cache all that is left of its share. TGI does so with its paged cache (`FlashCausalLM`);
 * encoder-decoders (`Seq2SeqLM`) and state spaces (`Mamba`) keep one for each batch, as transformers does.
 */
export function fillsShare(model: ModelShape, engine: Engine): boolean {
  return engine === "tgi" ? isPaged(model) : engine !== "transformers" && engine !== "llama.cpp";
}

/** Decoders with attention: what engines have paged caches for, and AWQ, GPTQ and quantized caches of transformers are made for. */
export function isPaged(model: ModelShape): boolean {
  return kindOf(model) === "decoder" && hasAttention(model);
}

/** Whether it decodes by CUDA graphs: TGI's encoder-decoders do not. */
export function hasGraphs(model: ModelShape, { engine, cudaGraphs }: ServeOptions): boolean {
  return (
    cudaGraphs &&
    engine !== "transformers" &&
    engine !== "llama.cpp" &&
    (engine !== "tgi" || kindOf(model) === "decoder")
  );
}

/** Whether anything is sampled: engines profile their sampler with it. */
export function generates(model: ModelShape): boolean {
  return cachedTower(model) !== undefined;
}
