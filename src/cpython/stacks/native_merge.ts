/**
 * Merges native and Python frames into one stack, as the agent does (agent/src/stacks/stack.c): each native
 * frame of the evaluator is replaced by the Python frames that it runs.
 *
 *   native, leaf first        evaluations of the thread state           together
 *     read                                                                read
 *     os_read                                                             os_read
 *     evaluator  <─ anchor ──  1: inner, middle                           inner, middle
 *     list_sort                                                           list_sort
 *     evaluator  <─ anchor ──  2: <module>                                <module>
 *     Py_RunMain                                                          Py_RunMain
 *
 * With anchors (from 3.12 on; in 3.11 only for the innermost), the merge is exact. Without one, an evaluator's
 * native frame is recognized by its symbol, and both lists are matched from the leaf, where a greenlet or a
 * truncated stack makes the least difference.
 */
import { itemAt } from "../../model/base/columns.js";
import type { NativeFrame, NativeStack } from "../../model/profile/native_stack.js";
import type { Evaluation, PythonFrame, PythonStack } from "./frames.js";

export type MixedFrame =
  | { readonly kind: "python"; readonly frame: PythonFrame }
  | { readonly kind: "native"; readonly frame: NativeFrame }
  /** Frames are missing here; `text` gives the reason. */
  | { readonly kind: "mark"; readonly text: string };

/** Compilers split rarely run code off into "....cold". */
export function isEvaluator(name: string): boolean {
  return /^_PyEval_EvalFrameDefault(?:\.|$)/.test(name);
}

/** Builds whose evaluator is a function for each instruction; these functions also count as the evaluator. */
const INSTRUCTION = /^_TAIL_CALL_/;

/** Leaf first. */
export function mergeStacks(python: PythonStack, native: NativeStack): MixedFrame[] {
  const merged: MixedFrame[] = [];
  let evaluation = 0;
  let shown = 0;
  const showUntil = (end: number) => {
    for (; shown < end; shown++) {
      merged.push({ kind: "python", frame: itemAt(python.frames, shown) });
    }
  };
  for (const frame of native.frames) {
    while (isPassed(python.evaluations[evaluation], frame)) {
      showUntil(itemAt(python.evaluations, evaluation++).end);
    }
    if (isRunBy(python.evaluations[evaluation], frame)) {
      while (isInstruction(merged.at(-1))) {
        merged.pop();
      }
      showUntil(itemAt(python.evaluations, evaluation++).end);
    } else {
      merged.push({ kind: "native", frame });
    }
  }
  if (native.cut !== null) {
    merged.push({ kind: "mark", text: native.cut });
  } else if (evaluation === 0 && python.frames.length > 0) {
    merged.length = 0; // none of its functions is known to be the evaluator, so it is unknown which frame called which
  }
  showUntil(python.frames.length);
  return merged;
}

/** Its native frame must have been nearer to the leaf, and is missing. */
function isPassed(evaluation: Evaluation | undefined, { low }: NativeFrame): boolean {
  return evaluation !== undefined && evaluation.anchor !== null && evaluation.anchor < low;
}

function isRunBy(evaluation: Evaluation | undefined, frame: NativeFrame): boolean {
  if (evaluation === undefined) {
    return false;
  }
  const { anchor } = evaluation;
  const named = isEvaluator(frame.function);
  // If a stack is truncated, the extent of its last frame is unknown.
  return anchor === null ? named : anchor < frame.high || (named && frame.high === frame.low);
}

function isInstruction(frame: MixedFrame | undefined): boolean {
  return frame?.kind === "native" && INSTRUCTION.test(frame.frame.function);
}
