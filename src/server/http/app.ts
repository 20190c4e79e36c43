/** The routes of the server. Each answer is JSON; an error is one line. */
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { secureHeaders } from "hono/secure-headers";
import { TidemarkError } from "../../model/errors/errors.js";
import { FRAMES_PATH, MOST_FRAMES_BYTES } from "../../model/wire/frames.js";
import { PARTIAL_HEADER, partialHeader } from "../../model/wire/partial.js";
import { EVENTS_PATH } from "../../model/wire/services.js";
import { allowingPartial, type StreamFiles } from "../../store/index.js";
import type { ActionBook } from "../actions/action_book.js";
import type { ActionLimits } from "../actions/action_limits.js";
import { Evictions } from "../actions/evictions.js";
import type { Alerting } from "../alerts/alerting.js";
import { coverageOf } from "../answers/coverage.js";
import type { IngestAnswers } from "../answers/ingest.js";
import { KnownNames } from "../answers/known_names.js";
import { REFUSED, refusal, statusOf } from "../answers/refusal.js";
import type { ArtifactFiles } from "../artifacts/artifact_files.js";
import type { ForecastBook } from "../forecasts/forecast_book.js";
import { addGrafana } from "../grafana/routes.js";
import type { Deliveries } from "../ingest/deliveries.js";
import type { Ingest } from "../ingest/ingest.js";
import { EXPOSITION_TYPE, expositionOf } from "../metrics/exposition.js";
import { fleetMetrics, killMetrics } from "../metrics/fleet_metrics.js";
import { RequestCounts, serverMetrics } from "../metrics/server_metrics.js";
import type { RequestBook } from "../requests/request_book.js";
import { addSenders } from "../senders/routes.js";
import type { SenderStreams } from "../senders/sender_streams.js";
import { type ActionAudit, addActions } from "./actions.js";
import { type AuditLine, addAlerts } from "./alerts.js";
import { API_ROUTES } from "./api_routes.js";
import { type ArtifactRoutes, addArtifacts } from "./artifacts.js";
import type { Changes } from "./changes.js";
import { FRAMES, INGEST_STATE } from "./collector_routes.js";
import { ownPagesOnly } from "./own_pages.js";
import { addPages } from "./pages.js";
import { valuesIn } from "./parameters.js";
import { addQueries, type QueryParts } from "./queries.js";
import { addRequests, type RequestAudit } from "./requests.js";
import type { Scope, Tokens } from "./tokens.js";

export interface AppParts extends Omit<QueryParts, "names"> {
  readonly ingest: Ingest;
  readonly senders: SenderStreams;
  readonly tokens: Tokens;
  readonly alerting: Alerting;
  readonly forecasts: ForecastBook;
  readonly actions: ActionBook;
  readonly actionLimits: () => ActionLimits;
  readonly deliveries: Deliveries;
  readonly ingestAnswers: IngestAnswers;
  readonly artifacts: ArtifactFiles;
  readonly recordings: Pick<StreamFiles, "list">;
  readonly reportOfFile: ArtifactRoutes["report"];
  readonly requests: RequestBook;
  /** The policy that collectors get; null: none; undefined: it cannot be read. */
  readonly handedPolicy: () => string | null | undefined;
  readonly changes: Changes;
  /** Host names that a request may use; null if any is allowed. */
  readonly hosts: ReadonlySet<string> | null;
  /** The folder of the pages. */
  readonly pages: string;
  readonly log: (line: RequestLine) => void;
  /** What a person changed, and what a collector was allowed and did. */
  readonly audit: (line: AuditLine | ActionAudit | RequestAudit) => void;
  readonly fail: (error: unknown) => void;
}

export interface RequestLine {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly ms: number;
}

/** A full disk, a restart and a database that is away are rarely over sooner. */
const RETRY_AFTER_S = 5;

export function buildApp(parts: AppParts): Hono {
  const app = new Hono();
  const counts = new RequestCounts();
  app.use(async (context, next) => {
    const begun = performance.now();
    await next();
    const { method, path } = context.req;
    if (context.res.status === 503) {
      context.header("retry-after", String(RETRY_AFTER_S));
    }
    const ms = Math.round((performance.now() - begun) * 10) / 10;
    counts.count(context.res.status, ms);
    const refused: unknown = context.get(REFUSED as never);
    const route = routeOfCollectors(context);
    if (typeof refused === "string" && route !== undefined) {
      parts.deliveries.refused(route, refused, Date.now());
    }
    parts.log({ method, path, status: context.res.status, ms });
  });
  app.use(
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'", "data:"],
        connectSrc: ["'self'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
      xFrameOptions: "DENY",
      referrerPolicy: "no-referrer",
      strictTransportSecurity: false,
    }),
  );
  // A page of another site could otherwise reach a server on loopback by a name that it controls.
  app.use(async (context, next) => {
    const host = (context.req.header("host") ?? "").replace(/:\d+$/, "").toLowerCase();
    if (parts.hosts !== null && !parts.hosts.has(host)) {
      return refusal(context, 403, "this server answers only requests for a loopback host name");
    }
    return next();
  });
  app.onError((error, context) => {
    if (error instanceof TidemarkError) {
      return refusal(context, statusOf(error), error.message, error.what);
    }
    parts.fail(error);
    return refusal(context, 500, "something went wrong inside the server; its log has more");
  });
  app.use(markPartial);
  app.get("/healthz", (context) => context.json({ ok: true }));
  app.get("/readyz", (context) => context.json({ ok: true }));
  addIngest(app, parts);
  addSenders(app, parts.senders, needs("ingest", parts.tokens));
  const read = needs("read", parts.tokens);
  addGrafana(app, { store: parts.store, allowed: read, fail: parts.fail, coverageOf });
  app.get("/metrics", read, async (context) => {
    const { store } = parts;
    const families = [
      ...(await fleetMetrics(store)),
      killMetrics(parts.forecasts),
      ...(await serverMetrics(store, counts)),
    ];
    return context.body(expositionOf(families), 200, { "content-type": EXPOSITION_TYPE });
  });
  app.use("/api/v1/*", read);
  const names = new KnownNames(parts.store, parts.ingest);
  addQueries(app, { ...parts, names });
  const own = ownPagesOnly(() => parts.alerting.externalUrl);
  addAlerts(app, parts.alerting, needs("admin", parts.tokens), own, parts.audit);
  addActions(app, {
    book: parts.actions,
    names,
    limits: parts.actionLimits,
    evictions: new Evictions(parts.actions, parts.actionLimits),
    allowed: needs("act", parts.tokens),
    own,
    audit: parts.audit,
    changed: () => parts.changes.changed(),
  });
  app.get(INGEST_STATE.path, async (context) => {
    valuesIn(context.req.url, INGEST_STATE.parameters);
    return context.json(await parts.ingestAnswers.document(Date.now()));
  });
  addArtifacts(app, {
    artifacts: parts.artifacts,
    recordings: parts.recordings,
    allowed: needs("ingest", parts.tokens),
    report: parts.reportOfFile,
    changed: () => parts.changes.changed(),
  });
  addRequests(app, {
    book: parts.requests,
    names,
    policy: parts.handedPolicy,
    admin: needs("admin", parts.tokens),
    collector: needs("ingest", parts.tokens),
    own,
    audit: parts.audit,
    changed: () => parts.changes.changed(),
  });
  app.get(EVENTS_PATH, (context) => parts.changes.stream(context));
  app.all("/api/*", (context) => refusal(context, 404, "there is no such route"));
  addPages(app, parts.pages);
  app.notFound((context) => refusal(context, 404, "there is no such page"));
  return app;
}

/** Routes that only read: their answers may lack a part of the database. What receives data gets the error instead. */
const READS = new Set(
  API_ROUTES.filter(({ scope }) => scope === "read").map(({ method, path }) => `${method} ${path}`),
);

/** Marks an answer to which a part of the database did not contribute. */
async function markPartial(context: Context, next: () => Promise<void>): Promise<void> {
  if (!READS.has(`${context.req.method.toLowerCase()} ${context.req.path}`)) {
    await next();
    return;
  }
  const partial = await allowingPartial(next);
  if (partial === null) {
    return;
  }
  const { res } = context;
  if (res.ok && res.headers.get("content-type")?.startsWith("application/json")) {
    const document = (await res.json()) as object;
    context.res = new Response(JSON.stringify({ ...document, partial }), res);
    context.res.headers.delete("content-length");
  }
  context.res.headers.set(PARTIAL_HEADER, partialHeader(partial));
}

function addIngest(app: Hono, { ingest, tokens }: AppParts): void {
  const limit = bodyLimit({
    maxSize: MOST_FRAMES_BYTES,
    onError: (context) =>
      refusal(
        context,
        413,
        `the body is too large: the limit frames-bytes is ${MOST_FRAMES_BYTES >> 20} MiB`,
      ),
  });
  app.post(FRAMES_PATH, needs("ingest", tokens), limit, async (context) => {
    const type = context.req.header("content-type") ?? "";
    if (type !== "application/octet-stream" || context.req.header("content-encoding")) {
      return refusal(context, 415, "frames are sent as application/octet-stream, not encoded");
    }
    const { stream, offset } = valuesIn(context.req.url, FRAMES.parameters);
    const body = Buffer.from(await context.req.arrayBuffer());
    const { status, answer } = await ingest.accept(stream, offset, body);
    return context.json(answer, status);
  });
}

/** Routes below /api/v1 that collectors use: they have a scope of their own in place of read. */
const COLLECTORS = API_ROUTES.filter(({ scope }) => scope === "ingest" || scope === "act").map(
  ({ method, path }) => ({
    path,
    method: method.toUpperCase(),
    form: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  }),
);

/** The path of the route that collectors use, with the names of its parameters. */
function routeOfCollectors({ req }: Context): string | undefined {
  return COLLECTORS.find(({ method, form }) => method === req.method && form.test(req.path))?.path;
}

function needs(scope: Scope, tokens: Tokens) {
  return async (context: Context, next: () => Promise<void>) => {
    if (scope === "read" && routeOfCollectors(context) !== undefined) {
      return next();
    }
    if (!tokens.allow(scope, context.req.header("authorization"))) {
      context.header("WWW-Authenticate", "Bearer");
      return refusal(context, 401, `this needs a token of scope ${scope}`);
    }
    return next();
  };
}
