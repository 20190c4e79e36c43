import type { FileFacts } from "../flow/file_facts.js";
import type { Scope } from "../scopes/scope.js";
import { assignedTo, bare, isInside, positionals } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const viewPinsBase: Rule = {
  id: "TM-L035",
  name: "view-pins-base",
  severity: "warning",
  finds:
    "A small slice of a large array, tensor, `memoryview` or data frame that is kept in an attribute or a container.",
  why: "A slice is a view and keeps the whole array alive.",
  speed: "The size of the base array for each view that is kept.",
  before: `
import numpy as np

thumbnails = {}

def load(name, path):
    image = np.load(path)
    thumbnails[name] = image[:16, :16]
`,
  after: `
import numpy as np

thumbnails = {}

def load(name, path):
    image = np.load(path)
    thumbnails[name] = image[:16, :16].copy()
    while len(thumbnails) > 100:
        thumbnails.pop(next(iter(thumbnails)))
`,
  ignore: "The base array is kept anyway, or the slice is most of it.",
  proof:
    "`tidemark heap PID --to ndarray` shows `base` on the path; the retained size of the view is that of the base.",
  *check(file) {
    for (const subscript of file.module.nodesOf("subscript")) {
      const base = subscript.child("value");
      if (base?.kind !== "identifier" || !isPartOfIt(subscript)) {
        continue;
      }
      const scope = file.module.scopeOf(subscript).functionAround;
      const kind = scope === null ? null : baseKind(base, scope, file);
      const keeper = kind === null ? null : keeperOf(subscript, file);
      if (kind !== null && keeper !== null) {
        const copy = kind === "tensor" ? ".clone()" : ".copy()";
        yield {
          node: subscript,
          message: `${code(keeper)} keeps a view of ${code(base.text)}, and with it the whole ${kind}`,
          ...(kind === "memoryview"
            ? {}
            : {
                fix: {
                  description: `copy it: ${copy}`,
                  edits: [{ start: subscript.end, end: subscript.end, text: copy }],
                },
              }),
        };
      }
    }
  },
};

/** A slice with a limit; `x[:]`, `x[1:]` and `x[::2]` keep most of it anyway. */
function isPartOfIt(subscript: SyntaxNode): boolean {
  const keys = subscript.childrenOf("subscript");
  return keys.some(({ kind, text }) => kind === "slice" && /^[^:]*:\s*[^:\s-][^:]*$/.test(text));
}

type BaseKind = "array" | "tensor" | "memoryview";

/** The sliced object, if the function created it and does not keep it. */
function baseKind(base: SyntaxNode, scope: Scope, file: FileFacts): BaseKind | null {
  const binder = file.names.binderOf(base.text, scope);
  if (binder !== scope) {
    return null;
  }
  const parameter = scope.parameter(base.text);
  if (parameter !== undefined) {
    return /\b(?:ndarray|NDArray)\b/.test(parameter.annotation)
      ? "array"
      : /\bTensor\b/.test(parameter.annotation)
        ? "tensor"
        : /memoryview/.test(parameter.annotation)
          ? "memoryview"
          : null;
  }
  const value = file.names.valueOf(base);
  const callee = value.kind === "call" ? value.child("function") : null;
  const full = callee === null ? "" : (file.names.resolve(callee) ?? callee.text);
  if (
    /^numpy\.(?!\w*(?:shape|ndim)$)\w+$|^(?:cv2|imageio|skimage\.io|soundfile|librosa|rasterio|tifffile)\.\w+$|^np\.\w+$/.test(
      full,
    )
  ) {
    return "array";
  }
  if (
    /^torch\.(?:load|randn|zeros|ones|rand|empty|tensor|cat|stack|from_numpy|arange|full|as_tensor|frombuffer)$|^torchaudio\.load$|^torchvision\.io\.\w+$/.test(
      full,
    )
  ) {
    return "tensor";
  }
  return full === "memoryview" ? "memoryview" : null;
}

/** The attribute or container that keeps the view beyond the function. */
function keeperOf(subscript: SyntaxNode, file: FileFacts): string | null {
  const target = assignedTo(subscript);
  if (target?.kind === "attribute") {
    return /^(?:self|cls)\./.test(target.text) ? target.text : null;
  }
  if (target?.kind === "subscript") {
    const holder = target.child("value");
    return holder !== null && (isLasting(holder, file) || isCollected(subscript, holder, file))
      ? holder.text
      : null;
  }
  const list = subscript.parent;
  const call = list?.kind === "argument_list" ? list.parent : null;
  const callee = call?.kind === "call" ? call.child("function") : null;
  const method = callee?.child("attribute")?.text ?? "";
  const holder = callee?.child("object");
  const isAdded =
    /^(?:append|add|appendleft|insert|put|setdefault)$/.test(method) &&
    positionals(call as SyntaxNode).includes(bare(subscript));
  return isAdded && holder && (isLasting(holder, file) || isCollected(subscript, holder, file))
    ? holder.text
    : null;
}

/** A loop loads one large array after the other, and a list made before the loop gets a part of each. */
function isCollected(subscript: SyntaxNode, holder: SyntaxNode, file: FileFacts): boolean {
  const loop = file.repeats.loopAround(subscript);
  const base = subscript.child("value");
  const slot = file.slots.of(holder);
  if (loop === null || base === null || slot?.kind !== "local") {
    return false;
  }
  const loaded = file.names.valueOf(base);
  const isMadeBefore = file.slots.writesOf(slot).every(({ target }) => !isInside(target, loop));
  return (
    isMadeBefore &&
    isInside(loaded, loop) &&
    /(?:load|imread|fromfile|read|open|memmap)\w*$/.test(loaded.child("function")?.text ?? "")
  );
}

function isLasting(holder: SyntaxNode, file: FileFacts): boolean {
  const slot = file.slots.of(holder);
  return slot !== null && slot.kind !== "local" && file.containers.of(slot) !== null;
}
