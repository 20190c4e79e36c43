import type { FileFacts } from "../flow/file_facts.js";
import type { Call } from "../scopes/module.js";
import { code } from "./growing.js";
import { callsMatching, madeAgain } from "./made_again.js";
import type { Rule } from "./rule.js";

export const metricPerRequest: Rule = {
  id: "TM-L031",
  name: "metric-per-request",
  severity: "error",
  finds:
    "A Prometheus or OpenTelemetry instrument, a tracer provider or an exporter created in a request handler or a loop.",
  why: "Registries keep every instrument; providers start a thread with a queue.",
  speed: "A few KiB for each call, plus a thread for each provider.",
  before: `
from prometheus_client import Counter, CollectorRegistry

@app.get("/items")
def items():
    requests = Counter("requests", "Requests")
    requests.inc()
`,
  after: `
from prometheus_client import Counter, CollectorRegistry

requests = Counter("requests", "Requests")

@app.get("/items")
def items():
    requests.inc()
`,
  ignore: "The code also creates a separate registry and drops it after the push.",
  proof: "`tidemark heap PID` counts the instruments.",
  *check(file) {
    for (const call of [...callsMatching(INSTRUMENTS, file), ...callsOfMeters(file)]) {
      const repeat = madeAgain(call, file);
      const isLoop = repeat?.origin === "loop";
      if (
        repeat !== null &&
        (!isLoop || (repeat.kind === "loop" && /f["']|\.format\(|uuid|%/.test(call.node.text))) &&
        !/registry=/.test(call.node.text)
      ) {
        yield {
          node: call.node,
          message: `${code(call.callee.text)} is created ${repeat.text}, and its registry keeps every one`,
        };
      }
    }
  },
};

/** `meter.create_counter("n")`, where the meter is a variable. */
function callsOfMeters(file: FileFacts): Call[] {
  return file.module
    .callsOf("create_counter", "create_histogram", "create_up_down_counter", "create_gauge")
    .filter(
      ({ receiver, callee }) =>
        receiver !== null &&
        file.names.resolve(callee) === null &&
        /get_meter$/.test(file.names.valueOf(receiver).child("function")?.text ?? ""),
    );
}

const INSTRUMENTS =
  /^(?:prometheus_client\.(?:metrics\.)?(?:Counter|Gauge|Histogram|Summary|Info|Enum)|opentelemetry\.sdk\.\S*(?:TracerProvider|MeterProvider|BatchSpanProcessor|SimpleSpanProcessor)|opentelemetry\.exporter\.\S*Exporter|opentelemetry\.metrics\.get_meter\(\)\.create_\w+|statsd\.StatsClient|datadog\.\S*DogStatsd|sentry_sdk\.init|ddtrace\.\S*Tracer)$|^(?:\w*meter)\.create_(?:counter|histogram|up_down_counter|gauge)$/;
