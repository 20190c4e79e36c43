import type { FileFacts } from "../flow/file_facts.js";
import { isVerb } from "../flow/tensors.js";
import type { Call } from "../scopes/module.js";
import type { Scope } from "../scopes/scope.js";
import { dottedText } from "../syntax/expressions.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const inferenceWithGradients: Rule = {
  id: "TM-L015",
  name: "inference-with-gradients",
  severity: "warning",
  finds:
    "Inference or evaluation with PyTorch outside `torch.no_grad()` and `torch.inference_mode()`.",
  why: "Each forward pass records a graph and keeps all activations until the output is released.",
  speed: "Once: the activations of one batch. Without a bound if the outputs are kept.",
  before: `
import torch

def evaluate(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()
    return correct
`,
  after: `
import torch

@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()
    return correct
`,
  ignore: "The gradients are needed, for example for saliency maps or adversarial examples.",
  proof: "`tidemark gpu PID` shows activations as live while the service is idle.",
  *check(file) {
    if (!file.tensors.usesTorch) {
      return;
    }
    for (const scope of file.module.functions) {
      const call = scope.kind === "function" ? forwardOf(scope, file) : undefined;
      if (call !== undefined) {
        yield {
          node: call.node,
          message: `${code(scope.name)} runs ${code(call.callee.text)} with gradients on: use ${code("torch.inference_mode()")}`,
        };
      }
    }
  },
};

const INFERENCE =
  /^_?(?:evaluate|evaluation|eval|validate|validation|valid|predict\w*|infer\w*|inference|test|score|embed\w*|encode_\w+|classify|eval_\w+|evaluate_\w+|run_inference|do_eval|validate_\w+|test_model|test_epoch|valid_epoch|val_epoch|run_eval\w*|generate_embeddings?)$/;

/** The call of a model in a function that does inference and computes no gradients. */
function forwardOf(scope: Scope, file: FileFacts): Call | undefined {
  const { tensors } = file;
  const calls = callsIn(scope, file);
  const evals = calls.some(
    ({ name, receiver, node }) =>
      name === "eval" && receiver !== null && node.child("arguments")?.children.length === 0,
  );
  const isInference = evals || INFERENCE.test(scope.name) || file.repeats.handles(scope);
  const owner = scope.methodOf;
  const isPartOfModel = owner !== null && tensors.isModuleClass(owner);
  const needsGradients = calls.some(({ name }) =>
    /^(?:backward|manual_backward|grad|train|requires_grad_|enable_grad|zero_grad|autograd|jacobian)$/.test(
      name,
    ),
  );
  if (!isInference || isPartOfModel || needsGradients || /pytest|unittest/.test(file.path)) {
    return undefined;
  }
  return calls.find(
    ({ callee, node }) => isForward(callee, file, evals) && !tensors.isWithoutGradients(node),
  );
}

function callsIn(scope: Scope, file: FileFacts): Call[] {
  return [...file.module.calledNames].flatMap((name) =>
    file.module.callsOf(name).filter((call) => call.scope === scope),
  );
}

const FORWARD =
  /^(?:self\.)?_?(?:model|net|network|encoder|classifier|backbone|bert|resnet|transformer|detector|segmenter|[a-z_]*_(?:model|net))$/;

/** Keras, scikit-learn and pipelines have other methods: `model(x)` is PyTorch's. */
function isForward(callee: Call["callee"], file: FileFacts, evals: boolean): boolean {
  const text = dottedText(callee) ?? "";
  if (file.names.functionNamed(callee) !== null || isVerb(text)) {
    return false;
  }
  const made = file.names.constructorOf(callee) ?? "";
  if (/pipeline|SentenceTransformer|InferenceSession/.test(made)) {
    return false;
  }
  return (
    FORWARD.test(text) ||
    /^torch\.nn\.[A-Z]|^torchvision\.models\.|AutoModel\w*\.from_pretrained$/.test(made) ||
    (evals && FORWARD.test(text))
  );
}
