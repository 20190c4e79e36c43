import type { FileFacts } from "../flow/file_facts.js";
import type { Call } from "../scopes/module.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const logHandlerPerCall: Rule = {
  id: "TM-L029",
  name: "log-handler-per-call",
  severity: "error",
  finds:
    "`addHandler` or `addFilter` on a logger in a request handler, in a loop or for each object, without `removeHandler`.",
  why: "A logger lives as long as the process and keeps all its handlers. Each has a stream and a lock, and each message is written once per handler.",
  speed: "One handler, and often an open file, for each call.",
  before: `
import logging

class Job:
    def __init__(self, name):
        self.log = logging.getLogger("jobs")
        self.log.addHandler(logging.FileHandler(f"{name}.log"))
`,
  after: `
import logging

log = logging.getLogger("jobs")
log.addHandler(logging.FileHandler("jobs.log"))

class Job:
    def __init__(self, name):
        self.log = log
`,
  ignore: "The function runs once, or the logger belongs to one object and is dropped with it.",
  proof: "`tidemark heap PID --to FileHandler` shows the path `Logger > handlers > list`.",
  *check(file) {
    if (
      file.module.callsOf("removeHandler", "removeFilter", "hasHandlers").length > 0 ||
      CLEARS.test(file.tree.source.text)
    ) {
      return;
    }
    for (const call of file.module.callsOf("addHandler", "addFilter")) {
      const name = call.scope.functionAround?.name;
      const repeat = file.repeats.of(call.node);
      const isForEach =
        repeat !== null &&
        !(repeat.kind === "loop" && isOverHandlers(repeat.node)) &&
        !(repeat.origin === "loop" && isGiven(call));
      const isForObject = name === "__init__" && isNamedLogger(call, file) && !isOneOfAKind(call);
      if ((isForEach || isForObject) && !isGuarded(call.node)) {
        yield {
          node: call.node,
          message: `${code(call.callee.text)} adds one more to the logger ${isForEach ? repeat?.text : `for each ${code(call.scope.methodOf?.name ?? "object")}`}, and nothing removes it`,
        };
      }
    }
  },
};

const CLEARS =
  /\.handlers\.clear\(\)|\.handlers\s*=|\.handlers\[:\]\s*=|handlers\.pop\(|if not [\w.]*\.handlers|if [\w.]*\.handlers|len\([\w.]*\.handlers\)/;

/** `for handler in handlers: logger.addHandler(handler)`. */
function isOverHandlers(loop: SyntaxNode): boolean {
  return /handler|filter|logger|log\b|names?\b/i.test(
    `${loop.child("left")?.text} ${loop.child("right")?.text}`,
  );
}

/** A logger that the function is called with may be another one each time. */
function isGiven({ receiver, scope }: Call): boolean {
  return scope.functionAround?.parameter(receiver?.text ?? "") !== undefined;
}

/** A logger with a fixed name is shared by all objects. */
function isNamedLogger(call: Call, file: FileFacts): boolean {
  const receiver = call.receiver;
  if (receiver === null) {
    return false;
  }
  const slot = file.slots.of(receiver);
  const value =
    slot === null ? file.names.valueOf(receiver) : (file.slots.valueOf(slot) ?? receiver);
  if (slot?.kind === "module") {
    return true;
  }
  const [name] = value.kind === "call" ? (value.child("arguments")?.children ?? []) : [];
  return (
    value.kind === "call" &&
    /getLogger$/.test(value.child("function")?.text ?? "") &&
    (name === undefined ||
      name.kind === "string" ||
      name.text === "__name__" ||
      /^(?:self\.__class__|type\(self\))/.test(name.text)) &&
    !name?.children.some(({ kind }) => kind === "interpolation")
  );
}

function isOneOfAKind(call: Call): boolean {
  return /(?:App|Application|Service|Server|Manager|Logger|Log|Logging|Main|Plugin|Engine|Config|Setup)$/.test(
    call.scope.methodOf?.name ?? "",
  );
}

function isGuarded(node: SyntaxNode): boolean {
  for (let outer = node.parent; outer !== null; outer = outer.parent) {
    if (
      outer.kind === "if_statement" &&
      /\bnot\b|is None|in\b/.test(outer.child("condition")?.text ?? "")
    ) {
      return true;
    }
  }
  return false;
}
