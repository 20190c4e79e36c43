import type { FileFacts } from "../flow/file_facts.js";
import { argumentsOf, within } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import type { Rule } from "./rule.js";

export const metricLabelFromId: Rule = {
  id: "TM-L032",
  name: "metric-label-from-id",
  severity: "error",
  finds:
    "A metric whose label, attribute or name contains the id of a user, a request or a session, or a URL.",
  why: "The client library keeps one time series with its buckets for each combination of label values, and never drops any.",
  speed: "0.5 to 5 KiB for each new id, in the service and in the metrics server.",
  before: `
from prometheus_client import Counter

requests = Counter("requests", "Requests", ["user_id"])

def handle(request):
    requests.labels(user_id=request.user_id).inc()
`,
  after: `
from prometheus_client import Counter

requests = Counter("requests", "Requests", ["plan"])

def handle(request):
    requests.labels(plan=request.user.plan).inc()
`,
  ignore: "There are only a few ids: shards, ranks, devices.",
  proof:
    "`tidemark diagnose PID` names the line of `labels`, and the holder `Counter > _metrics > dict`.",
  *check(file) {
    for (const call of file.module.callsOf("labels")) {
      const found = labelOf(call.node);
      if (found !== null && call.receiver !== null) {
        yield {
          node: call.node,
          message: `${code(call.receiver.text)} keeps a time series for each ${code(found)}`,
        };
      }
    }
    for (const call of file.module.callsOf(
      "add",
      "record",
      "increment",
      "incr",
      "gauge",
      "timing",
      "histogram",
      "inc",
      "set",
      "observe",
      "count",
      "distribution",
    )) {
      const found = attributeOf(call.node, call.name);
      const isMetric =
        /metric|counter|histogram|gauge|statsd|meter|stats|latency|requests?_total|duration/i.test(
          call.receiver?.text ?? "",
        ) ||
        (call.receiver !== null && isInstrument(call.receiver, file));
      if (found !== null && isMetric) {
        yield {
          node: call.node,
          message: `${code(call.receiver?.text ?? "")} keeps a time series for each ${code(found)}`,
        };
      }
    }
  },
};

/** Whether the receiver was created as an instrument, whatever its name. */
function isInstrument(receiver: SyntaxNode, { names, slots }: FileFacts): boolean {
  const slot = slots.of(receiver);
  const value = (slot === null ? null : slots.valueOf(slot)) ?? names.valueOf(receiver);
  const callee = value.kind === "call" ? (value.child("function")?.text ?? "") : "";
  return /(?:^|\.)(?:create_(?:counter|histogram|up_down_counter|gauge)|Counter|Gauge|Histogram|Summary|StatsClient|DogStatsd)$/.test(
    callee,
  );
}

const ID =
  /^(?:\w*_)?(?:user|account|customer|session|request|req|order|trace|span|transaction|message|msg|job|task|item|product|client|conversation|chat|device|tenant|visitor|correlation|run|object|document|doc|file|upload|payment|cart)_?(?:id|uuid|key|token)$|^(?:uid|uuid|guid|email|user|username|ip|ip_address|remote_addr|client_ip|url|uri|full_path|query|token|session|sid|prompt|text|message|timestamp|ts|error_message|exception|user_agent|sql|id|request_id|peer)$/i;
const FEW = /status|method|template|endpoint|pattern|name\b|\.route\b/i;

/** The last name of an expression: "user_id" of `request.state.user_id`, "url" of `str(request.url)`. */
function idOf(value: SyntaxNode): string | null {
  if (value.kind === "string") {
    for (const { children } of within(value, "interpolation")) {
      const found = children[0] === undefined ? null : idOf(children[0]);
      if (found !== null) {
        return found;
      }
    }
    return null;
  }
  if (value.kind === "call") {
    const callee = value.child("function")?.text ?? "";
    if (/^(?:str|repr|hash|int)$/.test(callee)) {
      const [first] = argumentsOf(value);
      return first === undefined ? null : idOf(first);
    }
    if (/(?:headers|cookies|args|params|form|environ)\.get$/.test(callee)) {
      const [key] = argumentsOf(value);
      return key?.kind === "string" && isIdKey(key) ? value.text : null;
    }
    return /uuid\d?$|uuid4|time\.time$|\.now$/.test(callee) ? callee : null;
  }
  if (value.kind === "subscript") {
    const key = value.child("subscript");
    return key !== null && isIdKey(key) ? value.text : null;
  }
  const last =
    value.kind === "attribute"
      ? value.child("attribute")?.text
      : value.kind === "identifier"
        ? value.text
        : undefined;
  const isPath = value.kind === "attribute" && /\.url\.path$|request\.path$/.test(value.text);
  return last !== undefined && !FEW.test(value.text) && (ID.test(last) || isPath)
    ? value.text
    : null;
}

/** "user_id", and as a header: "X-User-Id". */
function isIdKey(key: SyntaxNode): boolean {
  const name = key.text.replaceAll(/["']/g, "").replace(/^x-/i, "").replaceAll("-", "_");
  return ID.test(name);
}

function labelOf(call: SyntaxNode): string | null {
  for (const argument of call.child("arguments")?.children ?? []) {
    const value = argument.kind === "keyword_argument" ? argument.child("value") : argument;
    const name = argument.kind === "keyword_argument" ? (argument.child("name")?.text ?? "") : "";
    if (value === null || (value.kind === "string" && value.children.length === 0)) {
      continue;
    }
    const found = idOf(value);
    if (
      found !== null ||
      (ID.test(name) &&
        value.kind !== "string" &&
        !/^(?:file|item|object|run|job|message|query|id|text|exception)$/i.test(name))
    ) {
      return found ?? name;
    }
  }
  return null;
}

/** `counter.add(1, {"user_id": user.id})`, `statsd.incr(f"login.{user_id}")`, `tags=[f"user:{user_id}"]`. */
function attributeOf(call: SyntaxNode, name: string): string | null {
  for (const argument of argumentsOf(call)) {
    if (argument.kind === "dictionary") {
      for (const pair of argument.children) {
        const value = pair.child("value");
        const found = value === null ? null : idOf(value);
        if (found !== null) {
          return found;
        }
      }
    }
    if (argument.kind === "list") {
      for (const item of argument.children) {
        const found = item.kind === "string" ? idOf(item) : null;
        if (found !== null) {
          return found;
        }
      }
    }
    const isName =
      argument.kind === "string" &&
      argument === argumentsOf(call)[0] &&
      !/^(?:add|record|set|observe)$/.test(name);
    const found = isName ? idOf(argument) : null;
    if (found !== null) {
      return found;
    }
  }
  return null;
}
