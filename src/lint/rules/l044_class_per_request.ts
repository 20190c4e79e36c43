import { argumentsOf } from "../syntax/expressions.js";
import { code } from "./growing.js";
import { callsMatching, madeAgain } from "./made_again.js";
import type { Rule } from "./rule.js";

export const classPerRequest: Rule = {
  id: "TM-L044",
  name: "class-per-request",
  severity: "warning",
  finds:
    "A class created for each request or in a loop: `type(...)`, `namedtuple`, `create_model`, `make_dataclass`, a `class` statement.",
  why: "A class is part of reference cycles, its base classes list it, and caches such as those of `abc`, `typing` and serializers keep it.",
  speed: "2 to 50 KiB for each class.",
  before: `
from pydantic import create_model

@app.post("/validate")
def validate(fields: dict):
    Model = create_model("Model", **fields)
    return Model(**fields)
`,
  after: `
from functools import lru_cache
from pydantic import create_model

@lru_cache(maxsize=64)
def model_of(fields):
    return create_model("Model", **dict(fields))

@app.post("/validate")
def validate(fields: dict):
    return model_of(tuple(fields.items()))(**fields)
`,
  ignore: "The classes are created while the program starts.",
  proof: "`tidemark heap PID` counts `type` objects; they grow with the requests.",
  *check(file) {
    for (const call of callsMatching(MAKERS, file)) {
      const isType = call.full !== "type" || argumentsOf(call.node).length === 3;
      const repeat = madeAgain(call, file);
      if (isType && repeat !== null && repeat.origin !== "loop") {
        yield {
          node: call.node,
          message: `${code(call.callee.text)} creates a class ${repeat.text}`,
        };
      }
    }
    for (const owner of file.module.classes) {
      const repeat = owner.parent?.functionAround == null ? null : file.repeats.of(owner.node);
      if (repeat !== null && repeat.kind === "handler" && !isLocal(owner.name)) {
        yield {
          node: owner.node.child("name") ?? owner.node,
          message: `the class ${code(owner.name)} is created ${repeat.text}`,
        };
      }
    }
  },
};

const MAKERS =
  /^(?:type|types\.new_class|collections\.namedtuple|typing\.NamedTuple|dataclasses\.make_dataclass|(?:pydantic|pydantic\.main)\.create_model|attr\.make_class|attrs\.make_class|enum\.Enum|msgspec\.defstruct|marshmallow\.Schema\.from_dict)$/;

function isLocal(name: string): boolean {
  return name === "";
}
