/**
 * Every route of the server except its pages, with parameters and answers. Requests are checked by these declarations,
 * and the OpenAPI document (openapi.ts) is made from them.
 */

import { ACTIONS_PATH, EVICTIONS_PATH, LEASES_PATH } from "../../model/wire/actions.js";
import type { ApiAnswers } from "../../model/wire/api_answers.js";
import {
  ARTIFACT_FILE_PATH,
  ARTIFACT_REPORT_PATH,
  ARTIFACTS_PATH,
  MOST_PIECE_BYTES,
} from "../../model/wire/artifacts.js";
import { FRAMES_PATH, MOST_FRAMES_BYTES, STREAM_NAME } from "../../model/wire/frames.js";
import { HEAT_MAP_NAMES, HEAT_MAP_PATH } from "../../model/wire/heat_map.js";
import { COLLECTOR_PATH } from "../../model/wire/requests.js";
import { REQUESTS_PATH } from "../../model/wire/requests_path.js";
import {
  ACKNOWLEDGE_PATH,
  ALERTS_PATH,
  DIAGNOSES_PATH,
  DIFF_FIGURES,
  DIFF_PATH,
  DIFF_SCALES,
  ENDPOINTS_PATH,
  EVENTS_PATH,
  GROWING_PATH,
  INGEST_PATH,
  INSTANCE_PATH,
  INSTANCE_REPORT_PATH,
  PROFILE_PATH,
  SERIES_GROUPS,
  SERIES_NAMES,
  SERIES_PATH,
  SERVICE_PATH,
  SERVICES_PATH,
  SILENCE_PATH,
  SIZES_PATH,
  VERDICTS_PATH,
} from "../../model/wire/services.js";
import {
  condition,
  matching,
  moment,
  needed,
  neededWhole,
  oneOf,
  type Parameters,
  text,
  WINDOW,
  whole,
} from "./parameters.js";
import type { Scope } from "./tokens.js";

/** The answer with status 200: a JSON document of that name, or a body of that type. */
type Answer = { readonly json: keyof ApiAnswers } | { readonly type: string };

export interface ApiRoute {
  readonly method: "get" | "post" | "put";
  readonly path: string;
  readonly group: "services" | "sending" | "grafana" | "operation";
  readonly summary: string;
  /** null if no token is needed. */
  readonly scope: Scope | null;
  readonly parameters: Parameters;
  /** Types of the request's body. */
  readonly body?: readonly string[];
  readonly answer: Answer;
}

function route<Declared extends Parameters>(
  declared: Omit<ApiRoute, "parameters"> & { readonly parameters: Declared },
) {
  return declared;
}

const COLUMNS_TYPE = "application/vnd.tidemark.columns";
const SPARKLINE_STEPS = 32;
const MOST_STEPS = 2_000;
/** An answer has at most 150,000 cells, about 1.6 MB. */
const MOST_HEAT_STEPS = 300;
const MOST_HEAT_ROWS = 500;
const MOST_STACKS = 8_192;
const LONGEST_SELECTOR = 16_384;

const query = { method: "get", group: "services", scope: "read" } as const;
const sparkline = whole("Points of each sparkline.", {
  least: 1,
  most: MOST_STEPS,
  usual: SPARKLINE_STEPS,
});
const top = <Usual extends number | undefined>(usual: Usual) =>
  whole("Rows to list; the others are summed in `other`.", {
    least: 1,
    most: MOST_STACKS,
    usual,
  });
const SELECTION = {
  service: needed("Name of the service."),
  version: text("Only this version."),
  instance: text("Only this instance, by the name of its stream."),
};
const ofLabel = condition(
  "`KEY=VALUE`: only what the program allocated under this label of `tidemark.label`.",
);
const stream = matching(
  "Name of the instance's stream.",
  STREAM_NAME,
  "the name of a stream, 32 hex digits",
);
const selector = (says: string) => needed(says, LONGEST_SELECTOR);

export const SERVICES = route({
  ...query,
  path: SERVICES_PATH,
  summary: "All services of a window: memory, growth, versions, verdict.",
  parameters: { ...WINDOW, steps: sparkline },
  answer: { json: "services" },
});
export const SERVICE = route({
  ...query,
  path: SERVICE_PATH,
  summary: "One service with its instances and events.",
  parameters: { ...WINDOW, name: needed("Name of the service."), steps: sparkline },
  answer: { json: "service" },
});
export const SERIES = route({
  ...query,
  path: SERIES_PATH,
  summary: "A gauge over time: the mean of each step, summed over instances.",
  parameters: {
    ...WINDOW,
    ...SELECTION,
    name: oneOf("The metric.", SERIES_NAMES, "rssBytes"),
    by: oneOf("The label by which the sum is split.", SERIES_GROUPS, "none"),
    steps: whole("Steps of the window.", { least: 1, most: MOST_STEPS, usual: 200 }),
  },
  answer: { json: "series" },
});
export const HEAT_MAP = route({
  ...query,
  path: HEAT_MAP_PATH,
  summary: "The memory of the instances of a service over time, one row each, the odd ones marked.",
  parameters: {
    ...WINDOW,
    service: needed("Name of the service."),
    version: text("Only this version."),
    name: oneOf("The metric.", HEAT_MAP_NAMES, "rssBytes"),
    steps: whole("Steps of the window.", { least: 1, most: MOST_HEAT_STEPS, usual: 240 }),
    top: whole("Rows: the instances with the largest peaks.", {
      ...{ least: 1, most: MOST_HEAT_ROWS, usual: 300 },
    }),
  },
  answer: { json: "heatMap" },
});
export const PROFILE = route({
  ...query,
  path: PROFILE_PATH,
  summary: "The stacks of a window, merged over instances; live bytes are means over the window.",
  parameters: {
    ...WINDOW,
    ...SELECTION,
    endpoint: text("Only stacks of this endpoint, named as by `endpoints`."),
    where: ofLabel,
    format: oneOf("`columns`: typed arrays, for the pages.", ["json", "columns"], "json"),
    top: top(undefined),
  },
  answer: { json: "profile" },
});
export const DIFF = route({
  ...query,
  path: DIFF_PATH,
  summary: "The differences between two windows, versions, instances or any two selections.",
  parameters: {
    left: selector(
      'Selector of the processes of the left side, such as `{service_name="shop", version="41"}`.',
    ),
    right: selector(
      'Selector of the processes of the right side, such as `{service_name="shop", version="42"}`.',
    ),
    ...WINDOW,
    leftFrom: moment("Start of the left side's window, if it differs from `from`."),
    leftTo: moment("End of the left side's window, if it differs from `to`."),
    rightFrom: moment("Start of the right side's window, if it differs from `from`."),
    rightTo: moment("End of the right side's window, if it differs from `to`."),
    figure: oneOf("The figure that is compared.", DIFF_FIGURES, "liveBytes"),
    per: oneOf(
      "`instance`: each side is divided by its mean number of instances.",
      DIFF_SCALES,
      "instance",
    ),
    top: top<number>(100),
  },
  answer: { json: "diff" },
});
export const GROWING = route({
  ...query,
  path: GROWING_PATH,
  summary: "The stacks that grew in a window, and the bytes allocated in it that survived.",
  parameters: { ...WINDOW, ...SELECTION, top: top<number>(100) },
  answer: { json: "growing" },
});
export const ENDPOINTS = route({
  ...query,
  path: ENDPOINTS_PATH,
  summary:
    "The memory of a window by endpoint: the label `endpoint` that the program sets, else its function that a web or task framework called.",
  parameters: {
    ...WINDOW,
    ...SELECTION,
    by: text("Groups by this label of `tidemark.label` instead."),
    where: ofLabel,
    top: top<number>(100),
  },
  answer: { json: "endpoints" },
});
export const VERDICTS = route({
  ...query,
  path: VERDICTS_PATH,
  summary: "The verdicts of all instances that ran in a window, the fastest growing first.",
  parameters: { ...WINDOW, kind: text("Only verdicts of this kind.") },
  answer: { json: "verdicts" },
});
export const ALERTS = route({
  ...query,
  path: ALERTS_PATH,
  summary:
    "Alerts that fire, are pending, or were resolved within the last week; the rules and the receivers.",
  parameters: {},
  answer: { json: "alerts" },
});
const change = {
  method: "post",
  group: "services",
  scope: "admin",
  parameters: {},
  body: ["application/json"],
  answer: { json: "alert" },
} as const;
export const ACKNOWLEDGE = route({
  ...change,
  path: ACKNOWLEDGE_PATH,
  summary:
    "Acknowledges an alert until it is resolved: `{by, note, undo}`, all optional. It is not repeated to receivers.",
});
export const SILENCE = route({
  ...change,
  path: SILENCE_PATH,
  summary:
    "Silences an alert for `forMs` (0 ends the silence; at most 30 days): `{forMs, by, note}`. Receivers are not notified, also if it is resolved and fires again.",
});
export const ACTIONS = route({
  ...query,
  path: ACTIONS_PATH,
  summary: "What collectors did for services that were short of memory, the newest first.",
  parameters: { service: text("Only of this service.") },
  answer: { json: "actions" },
});
const acting = {
  method: "post",
  group: "sending",
  scope: "act",
  parameters: {},
  body: ["application/json"],
} as const;
export const LEASES = route({
  ...acting,
  path: LEASES_PATH,
  summary:
    "A collector asks whether it may act: `tidemark.action/1`. Granted if no other action runs in the service and the limits are kept.",
  answer: { json: "lease" },
});
export const EVICT = route({
  ...acting,
  path: EVICTIONS_PATH,
  summary:
    "A collector asks the server to evict the pod of a granted lease: `{id, pod}`, as in the request for the lease. Disruption budgets decide; 503 if the API server gave no answer.",
  answer: { json: "eviction" },
});
export const REPORT = route({
  ...acting,
  path: ACTIONS_PATH,
  summary: "A collector reports an action that was granted, or one that it did not carry out.",
  answer: { type: "application/json" },
});
export const ARTIFACTS = route({
  ...query,
  path: ARTIFACTS_PATH,
  summary: "Captures and last moments of programs that collectors sent, the newest first.",
  parameters: { service: text("Only of this service.") },
  answer: { json: "artifacts" },
});
export const INGEST_STATE = route({
  ...query,
  path: INGEST_PATH,
  summary:
    "Who sends what: streams, refused requests, values of labels; storage by service and tier, and retention.",
  parameters: {},
  answer: { json: "ingest" },
});
export const ARTIFACT_FILE = route({
  ...query,
  path: ARTIFACT_FILE_PATH,
  summary: "One file of an artifact, to download; `about.json` describes the artifact.",
  parameters: {},
  answer: { type: "application/octet-stream" },
});
export const ARTIFACT_REPORT = route({
  ...query,
  path: ARTIFACT_REPORT_PATH,
  summary: "The report of a recording in an artifact, for its page.",
  parameters: {},
  answer: { type: COLUMNS_TYPE },
});
export const PUT_ARTIFACT = route({
  method: "put",
  path: ARTIFACT_FILE_PATH,
  group: "sending",
  scope: "ingest",
  summary: `A collector uploads a file of an artifact, in pieces of at most ${MOST_PIECE_BYTES >> 20} MiB, and last \`about.json\`, whose SHA-256 begins with the id. The answer names the next offset.`,
  parameters: {
    sha256: matching("Of the whole file.", /^[0-9a-f]{64}$/, "a SHA-256, 64 hex digits"),
    bytes: neededWhole("Size of the whole file.", { least: 1, most: Number.MAX_SAFE_INTEGER }),
    offset: whole("Offset of the body in the file.", {
      least: 0,
      most: Number.MAX_SAFE_INTEGER,
      usual: 0,
    }),
  },
  body: ["application/octet-stream"],
  answer: { json: "artifact" },
});
export const REQUESTS = route({
  ...query,
  path: REQUESTS_PATH,
  summary: "Profiles that people asked collectors for, the newest first, and which hosts obey.",
  parameters: { service: text("Only of this service.") },
  answer: { json: "requests" },
});
export const WANTED = route({
  ...change,
  path: REQUESTS_PATH,
  summary:
    "Asks all collectors to give the programs of a service the agent for `forMs` (10 s to 1 h): `{service, forMs, by}`. The policy of each host decides.",
  answer: { json: "request" },
});
export const COLLECTOR = route({
  method: "post",
  path: COLLECTOR_PATH,
  group: "sending",
  scope: "ingest",
  summary:
    "A collector reports the outcome of the open requests, and gets the open ones and the policy that the server hands out.",
  parameters: {},
  body: ["application/json"],
  answer: { json: "collector" },
});
export const DIAGNOSES = route({
  ...query,
  path: DIAGNOSES_PATH,
  summary:
    "The diagnosis of each service that reported in a window, from all its processes of the two weeks before the window's end: growth by version, odd instances, sites, forecasts. Leaks come first.",
  parameters: { ...WINDOW, service: text("Only this service.") },
  answer: { json: "diagnoses" },
});
export const SIZES = route({
  ...query,
  path: SIZES_PATH,
  summary:
    "The memory request and limit that each service needs, from the daily peaks of its instances in the two weeks before the window's end, and what a change would save or break.",
  parameters: { ...WINDOW, service: text("Only this service.") },
  answer: { json: "sizes" },
});
export const INSTANCE = route({
  ...query,
  path: INSTANCE_PATH,
  summary: "One instance.",
  parameters: { id: stream },
  answer: { json: "instance" },
});
export const INSTANCE_REPORT = route({
  ...query,
  path: INSTANCE_REPORT_PATH,
  summary: "The report of one instance, for its page.",
  parameters: { id: stream },
  answer: { type: COLUMNS_TYPE },
});
export const FRAMES = route({
  method: "post",
  path: FRAMES_PATH,
  group: "sending",
  scope: "ingest",
  summary: `Receives frames of a recording, at most ${MOST_FRAMES_BYTES >> 20} MiB a request. The answer names the next offset.`,
  parameters: {
    stream,
    offset: whole("Offset of the body in the stream.", {
      least: 0,
      most: Number.MAX_SAFE_INTEGER,
      usual: 0,
    }),
  },
  body: ["application/octet-stream"],
  answer: { json: "frames" },
});

const sending = { method: "post", group: "sending", scope: "ingest", parameters: {} } as const;
const PPROF_BODIES = ["application/octet-stream", "multipart/form-data"];
const INGEST_PARAMETERS = {
  name: needed("`SERVICE.TYPE{label=value,...}`"),
  from: text("Start, in s, ms, us or ns since 1970."),
  until: text("End."),
  format: text("pprof, folded, groups or lines."),
};
const grafana = { method: "post", group: "grafana", scope: "read", parameters: {} } as const;
const CONNECT = ["application/proto", "application/json"];
const QUERIER_CALLS = {
  ProfileTypes: "Types of profiles.",
  LabelNames: "Names of labels.",
  LabelValues: "Values of a label.",
  Series: "Sets of labels.",
  SelectSeries: "A figure over time.",
  SelectMergeStacktraces: "A flame graph.",
  SelectMergeProfile: "A profile in pprof's format.",
  SelectHeatmap: "The distribution of a figure over processes, over time.",
  Diff: "The flame graph of a comparison.",
  GetProfileStats: "Whether there is data, and since when.",
};
const operation = { method: "get", group: "operation", parameters: {} } as const;

export const API_ROUTES: readonly ApiRoute[] = [
  SERVICES,
  SERVICE,
  SERIES,
  HEAT_MAP,
  PROFILE,
  DIFF,
  GROWING,
  ENDPOINTS,
  VERDICTS,
  DIAGNOSES,
  SIZES,
  ALERTS,
  ACKNOWLEDGE,
  SILENCE,
  ACTIONS,
  ARTIFACTS,
  INGEST_STATE,
  ARTIFACT_FILE,
  ARTIFACT_REPORT,
  PUT_ARTIFACT,
  LEASES,
  EVICT,
  REPORT,
  REQUESTS,
  WANTED,
  COLLECTOR,
  INSTANCE,
  INSTANCE_REPORT,
  {
    ...query,
    path: EVENTS_PATH,
    summary: "Server-sent events: `changed` when new data is in the database.",
    parameters: {},
    answer: { type: "text/event-stream" },
  },
  FRAMES,
  ...["/ingest", "/pyroscope/ingest"].map((path) => ({
    ...sending,
    path,
    summary: "Receives a profile of Pyroscope's SDKs.",
    parameters: INGEST_PARAMETERS,
    body: PPROF_BODIES,
    answer: { type: "text/plain" },
  })),
  {
    ...sending,
    path: "/push.v1.PusherService/Push",
    summary: "Receives profiles by Pyroscope's push API.",
    body: CONNECT,
    answer: { type: "application/proto" },
  },
  {
    ...sending,
    path: "/v1development/profiles",
    summary: "Receives profiles by OTLP.",
    body: ["application/x-protobuf"],
    answer: { type: "application/x-protobuf" },
  },
  {
    ...sending,
    path: "/profiling/v1/input",
    summary: "Receives profiles of Datadog's profiler.",
    body: ["multipart/form-data"],
    answer: { type: "application/json" },
  },
  ...Object.entries(QUERIER_CALLS).map(([name, summary]) => ({
    ...grafana,
    path: `/querier.v1.QuerierService/${name}`,
    summary,
    body: CONNECT,
    answer: { type: "application/json" },
  })),
  {
    ...grafana,
    method: "get",
    path: "/pyroscope/render",
    summary: "A flame graph as JSON.",
    parameters: renderParameters(""),
    answer: { type: "application/json" },
  },
  {
    ...grafana,
    method: "get",
    path: "/pyroscope/render-diff",
    summary: "The flame graph of a comparison as JSON.",
    parameters: { ...renderParameters("left"), ...renderParameters("right") },
    answer: { type: "application/json" },
  },
  {
    ...operation,
    path: "/metrics",
    scope: "read",
    summary: "Figures for Prometheus.",
    answer: { type: "text/plain" },
  },
  {
    ...operation,
    path: "/healthz",
    scope: null,
    summary: "Status 200 while the process runs: for a liveness probe.",
    answer: { json: "health" },
  },
  {
    ...operation,
    path: "/readyz",
    scope: null,
    summary:
      "Status 200 once the server has recovered its data and accepts requests: for a readiness probe.",
    answer: { json: "health" },
  },
  {
    ...operation,
    path: "/info",
    scope: null,
    summary: "The endpoints that this server supports, which Datadog's libraries request first.",
    answer: { type: "application/json" },
  },
  {
    ...operation,
    path: "/api/openapi.json",
    scope: null,
    summary: "This document.",
    answer: { type: "application/json" },
  },
];

function renderParameters(side: "" | "left" | "right"): Parameters {
  const named = (name: string) =>
    side === "" ? name : `${side}${name[0]?.toUpperCase()}${name.slice(1)}`;
  return {
    [named("query")]: needed("`TYPE{SELECTOR}`", LONGEST_SELECTOR),
    [named("from")]: text("For example `now-1h`, or s or ms since 1970."),
    [named("until")]: text("As `from`."),
    maxNodes: text("Most nodes to draw."),
  };
}
