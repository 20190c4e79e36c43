/**
 * Every route of the server except its pages, with parameters and answers. Requests are checked by these declarations,
 * and the OpenAPI document (openapi.ts) is made from them.
 */
import { EVENTS_PATH } from "../../model/wire/services.js";
import { COLLECTOR_ROUTES } from "./collector_routes.js";
import { type ApiRoute, query } from "./declared_route.js";
import { needed, type Parameters, text } from "./parameters.js";
import { LONGEST_SELECTOR, QUERY_ROUTES } from "./query_routes.js";

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
  ...QUERY_ROUTES,
  ...COLLECTOR_ROUTES,
  {
    ...query,
    path: EVENTS_PATH,
    summary: "Server-sent events: `changed` when new data is in the database.",
    parameters: {},
    answer: { type: "text/event-stream" },
  },
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
