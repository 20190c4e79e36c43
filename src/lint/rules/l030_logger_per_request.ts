import { within } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const loggerPerRequest: Rule = {
  id: "TM-L030",
  name: "logger-per-request",
  severity: "error",
  finds: "`logging.getLogger` with a name that contains the id of a request, a user or an object.",
  why: "`logging` keeps every logger by its name until the process ends.",
  speed: "About 1 KiB for each new name, plus the memory of the logger's handlers.",
  before: `
import logging

def handle(request):
    log = logging.getLogger(f"request.{request.id}")
    log.info("started")
`,
  after: `
import logging

log = logging.getLogger("request")

def handle(request):
    log.info("started", extra={"request": request.id})
`,
  ignore: "The names belong to a few plug-ins or modules.",
  proof: "`tidemark heap PID` counts `logging.Logger` objects; they grow with the requests.",
  *check(file) {
    for (const call of file.module.callsOf("getLogger", "getChild", "get_logger")) {
      const [name] = call.node.child("arguments")?.children ?? [];
      const full = file.names.resolve(call.callee) ?? call.callee.text;
      const isLogging = /^(?:logging\.getLogger|getLogger)$/.test(full) || call.name === "getChild";
      if (name === undefined || !isLogging || call.scope.functionAround === null) {
        continue;
      }
      const isId = parts(name).some(
        (part) => isIdentity(part) || isIdentity(file.names.valueOf(part)),
      );
      const isMade =
        name.kind !== "identifier" && name.kind !== "attribute" && name.text !== "__name__";
      const value = file.names.valueOf(name);
      const isMadeBefore =
        name.kind === "identifier" &&
        parts(value).length > 0 &&
        value !== name &&
        parts(value).some(isIdentity);
      if ((isMade && isId) || isMadeBefore) {
        yield {
          node: call.node,
          message: `${code(call.node.text.slice(0, 70))} creates a logger for each id, and ${code("logging")} keeps every logger`,
        };
      }
    }
  },
};

const ID =
  /(?:^|[._])(?:id|uid|uuid\d?|guid|key|token|session|request|req|user|username|email|ip|addr|address|peer|pid|job|task|trace|sid|time|now|timestamp|conn|client|order|tenant|hash|hex|uuid4\(\))\b|\bid\(self\)|uuid\d|time\(\)|(?:_|\b)id\b/i;

/** Not the part before a separator, as the kind of `kind.name`, nor the key of a setting. */
function isIdentity({ text }: SyntaxNode): boolean {
  return ID.test(text) && text !== "key" && !/\.r?(?:split|partition)\([^)]*\)\[0\]$/.test(text);
}

/** The parts of the name: `{x}` of a formatted string, both sides of `+` and `%`, arguments of `format`. */
function parts(name: SyntaxNode): SyntaxNode[] {
  if (name.kind === "string") {
    return [...within(name, "interpolation")].flatMap(({ children }) => children.slice(0, 1));
  }
  if (name.kind === "binary_operator") {
    const sides = [name.child("left"), name.child("right")].filter((side) => side !== null);
    return sides.flatMap((side) =>
      side.kind === "string" || side.kind === "binary_operator"
        ? parts(side)
        : side.kind === "tuple"
          ? side.children
          : [side],
    );
  }
  if (name.kind === "call") {
    return [...(name.child("arguments")?.children ?? [])];
  }
  return [];
}
