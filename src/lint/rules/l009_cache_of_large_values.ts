import type { Parameter, Scope } from "../scopes/scope.js";
import { cacheOf } from "./caches.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const cacheOfLargeValues: Rule = {
  id: "TM-L009",
  name: "cache-of-large-values",
  severity: "error",
  finds:
    "A cache whose arguments or results are arrays, tensors, images, data frames, requests or sessions, or an unlimited cache whose keys are user ids or user text.",
  why: "The cache keeps arguments and results. They are large, or each request adds new ones.",
  speed: "One array or request for each call; with a limit, up to `maxsize` of them.",
  before: `
from functools import cache
import numpy as np

@cache
def embedding(text: str) -> np.ndarray:
    return model.encode(text)
`,
  after: `
from functools import lru_cache
import numpy as np

@lru_cache(maxsize=256)
def embedding(text: str) -> np.ndarray:
    return model.encode(text)
`,
  ignore: "The arguments come from a small fixed set.",
  proof:
    "`tidemark lines REC` shows the bytes at the line that creates the values; the holder is `functools._lru_cache_wrapper`.",
  *check(file) {
    for (const scope of file.module.functions) {
      if (scope.isAsync || (scope.methodOf !== null && !scope.isStatic)) {
        continue; // TM-L007, TM-L008
      }
      const cache = cacheOf(scope, file);
      if (cache === null || scope.parameters.length === 0) {
        continue;
      }
      const large = scope.parameters.find((parameter) => isLarge(parameter));
      if (large !== undefined) {
        yield {
          node: cache.node,
          severity: cache.isBounded ? "warning" : "error",
          message: `${code(cache.name)} keeps each ${code(large.name)} that ${code(scope.name)} is called with${cache.isBounded ? ", up to its size" : ", without a limit"}`,
        };
      } else if (!cache.isBounded && (returnsLarge(scope) || hasEndlessKeys(scope))) {
        yield {
          node: cache.node,
          severity: returnsLarge(scope) ? "error" : "warning",
          message: `${code(cache.name)} has no limit, and ${code(scope.name)} ${returnsLarge(scope) ? "returns large values" : `has a new ${code(endlessKey(scope))} for each caller`}`,
        };
      }
    }
  },
};

const LARGE_TYPES =
  /\b(?:ndarray|NDArray|ArrayLike|Tensor|FloatTensor|LongTensor|DataFrame|Series|Image|PIL|Dataset|DataArray|Request|HttpRequest|WebSocket|Response|Session|AsyncSession|csr_matrix|spmatrix|jax\.Array|jnp\.ndarray|bytearray|Connection)\b/;
const LARGE_NAMES =
  /^(?:arr|array|tensor|tensors|image|img|frame_data|df|dataframe|matrix|embedding|embeddings|features|batch|pixels|request|req|response|session|db|db_session|waveform|audio|payload|body|blob|x_train|logits|input_ids|audio_bytes|image_bytes)$/;
const ENDLESS_KEYS =
  /^(?:user_?id|uid|session_?id|request_?id|query|prompt|text|sentence|message|email|token|url|uri|ip|ip_address|address|document|doc|order_?id|customer_?id|account_?id|item_?id|trace_?id|timestamp|ts|now|question|search|keyword|user|username|client_?id|device_?id|product_?id|body|sql|content|paragraph|tweet|id|data|raw)$/;

/** `bytes` are often a short text or a key: the name shows whether they are a file or a message. */
const LARGE_BYTES = /data|body|content|payload|image|buffer|blob|audio|video|file|frame|pdf|raw/i;

function isLarge({ name, annotation }: Parameter): boolean {
  if (/^["']?bytes\b/.test(annotation)) {
    return LARGE_BYTES.test(name);
  }
  return (
    (LARGE_TYPES.test(annotation) && !/Callable|^type\[/i.test(annotation)) ||
    (annotation === "" && LARGE_NAMES.test(name))
  );
}

function returnsLarge(scope: Scope): boolean {
  const type = scope.node.child("return_type")?.text ?? "";
  return LARGE_TYPES.test(type) && !/Callable|^type\[|^Type\[/.test(type);
}

function endlessKey(scope: Scope): string {
  return scope.parameters.find(({ name }) => ENDLESS_KEYS.test(name))?.name ?? "";
}

function hasEndlessKeys(scope: Scope): boolean {
  return endlessKey(scope) !== "";
}
