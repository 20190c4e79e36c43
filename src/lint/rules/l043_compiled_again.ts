import type { Repeat } from "../flow/repeats.js";
import type { Call } from "../scopes/module.js";
import { argumentsOf, bare, isInside } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import { callsMatching, madeAgain } from "./made_again.js";
import type { Rule } from "./rule.js";

export const compiledAgain: Rule = {
  id: "TM-L043",
  name: "compiled-again",
  severity: "error",
  finds:
    "`jax.jit`, `torch.compile`, `tf.function`, `numba.jit` or a wrapped lambda created in a loop or for each request.",
  why: "Each wrapper has its own cache; compiled programs and traced graphs stay in caches of the library.",
  speed: "0.1 to 50 MiB for each compilation.",
  before: `
import jax

def handle(request):
    step = jax.jit(lambda x: x * request.scale)
    return step(request.data)
`,
  after: `
import jax

step = jax.jit(lambda x, scale: x * scale)

def handle(request):
    return step(request.data, request.scale)
`,
  ignore: "The function runs once for each model.",
  proof: "`tidemark diagnose PID` reports growth of native memory below the compiler's frames.",
  *check(file) {
    for (const call of callsMatching(COMPILERS, file)) {
      const repeat = madeAgain(call, file);
      if (
        repeat !== null &&
        !isDecorator(call.node) &&
        (repeat.origin !== "loop" || isConstant(call, repeat))
      ) {
        yield {
          node: call.node,
          message: `${code(call.callee.text)} compiles again ${repeat.text}: create the compiled function once`,
        };
      }
    }
  },
};

const COMPILERS =
  /^(?:jax\.(?:jit|pmap|vmap\(\)\.jit)|jax\.(?:api\.)?jit|torch\.compile|torch\.jit\.(?:trace|script)|tensorflow\.function|tf\.function|numba\.(?:jit|njit|vectorize|cuda\.jit)|theano\.function|triton\.jit|equinox\.filter_jit)$/;

function isDecorator(node: SyntaxNode): boolean {
  return node.parent?.kind === "decorator";
}

/** In a loop: what is compiled does not come from the loop, or is a lambda that each round makes. */
function isConstant(call: Call, repeat: Repeat): boolean {
  const [first] = argumentsOf(call.node);
  if (repeat.kind !== "loop" || first === undefined) {
    return false;
  }
  const value = bare(first);
  return (
    value.kind === "lambda" ||
    (value.kind === "identifier" && !isSetIn(value.text, repeat.node, call))
  );
}

function isSetIn(name: string, loop: SyntaxNode, { scope }: Call): boolean {
  return (scope.writes.get(name) ?? []).some(
    ({ target, kind }) => kind !== "def" && isInside(target, loop),
  );
}
