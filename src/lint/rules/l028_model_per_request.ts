import { argumentsOf, mentions } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import { callsMatching, madeAgain } from "./made_again.js";
import type { Rule } from "./rule.js";

export const modelPerRequest: Rule = {
  id: "TM-L028",
  name: "model-per-request",
  severity: "error",
  finds: "A model, tokenizer or pipeline that is loaded for each request or in a loop.",
  why: "Two concurrent requests hold the weights twice; freed weights leave holes in the heap and in the device's cache.",
  speed:
    "The size of the model for each concurrent request. The peak, rather than steady growth, kills the service.",
  before: `
from transformers import AutoTokenizer

@app.post("/tokens")
def tokens(text: str):
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    return tokenizer(text)["input_ids"]
`,
  after: `
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("gpt2")

@app.post("/tokens")
def tokens(text: str):
    return tokenizer(text)["input_ids"]
`,
  ignore: "The loop compares several models, one after the other.",
  proof: "`tidemark lines REC --at peak` shows the bytes at the line that loads.",
  *check(file) {
    for (const call of callsMatching(MODELS, file)) {
      const repeat = madeAgain(call, file);
      if (repeat !== null && repeat.kind !== "loop") {
        yield {
          node: call.node,
          message: `${code(call.callee.text)} loads a model ${repeat.text}: load it once`,
        };
      } else if (repeat !== null && isConstant(call.node, repeat.node)) {
        yield {
          node: call.node,
          message: `${code(call.callee.text)} loads the same model in each iteration of the loop`,
        };
      }
    }
  },
};

/** The loaded model does not depend on anything that the loop changes. */
function isConstant(call: SyntaxNode, loop: SyntaxNode): boolean {
  const left = loop.child("left");
  const names =
    left === null
      ? []
      : left.kind === "identifier"
        ? [left.text]
        : left.children.map(({ text }) => text);
  const args = argumentsOf(call);
  return (
    left !== null &&
    args.length > 0 &&
    args.every(
      (argument) =>
        argument.kind === "string" ||
        /^(?:self\.|[A-Z_]+$)/.test(argument.text) ||
        (/^[\w.]+$/.test(argument.text) &&
          !names.some((name) => mentions(argument, name)) &&
          !/path|file|name/.test(argument.text)),
    )
  );
}

const MODELS =
  /(?:^|\.)(?:(?:Auto(?:Model\w*|Tokenizer|Processor|FeatureExtractor|ImageProcessor)|\w*(?:Tokenizer(?:Fast)?|ForCausalLM|ForSequenceClassification|ForConditionalGeneration|Model|Pipeline|Processor))\.from_pretrained|spacy\.load|SentenceTransformer|CrossEncoder|fasttext\.load_model|whisper\.load_model|WhisperModel|keras\.(?:saving\.)?(?:models\.)?load_model|tensorflow\.keras\.models\.load_model|tf\.keras\.models\.load_model|tf\.saved_model\.load|joblib\.load|transformers\.pipeline|onnxruntime\.InferenceSession|torch\.jit\.load|torch\.hub\.load|llama_cpp\.Llama|vllm\.LLM|ultralytics\.YOLO|easyocr\.Reader|gensim\.\S*load|KeyedVectors\.load\w*|tiktoken\.get_encoding|timm\.create_model|torchvision\.models\.\w+|insightface\.app\.FaceAnalysis|stanza\.Pipeline|nltk\.data\.load|xgboost\.Booster|open_clip\.create_model_and_transforms|clip\.load)$/;
