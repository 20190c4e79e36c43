/**
 * The routes that Grafana uses: Connect's unary calls, in protocol buffers or JSON, and Pyroscope's older
 * `/pyroscope/render`.
 */
import { promisify } from "node:util";
import { constants, gzip as zlibGzip } from "node:zlib";
import { Code, ConnectError, createConnectRouter, type Interceptor } from "@connectrpc/connect";
import { createFetchHandler } from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import type { Hono, MiddlewareHandler } from "hono";
import type { CoverageJson } from "../../model/documents/fleet_document.js";
import { badUsage, TidemarkError } from "../../model/errors/errors.js";
import { isOfDatabase } from "../../model/errors/server_errors.js";
import type { ProfileQuery, Store, WindowProfile } from "../../store/index.js";
import { flamebearer, flamebearerDiff, USUAL_NODES } from "./flamebearer.js";
import { type MemoryType, memoryType } from "./profile_types.js";
import { merged, querier, seriesMatchers, windowOf } from "./querier.js";
import { QuerierService } from "./querier_pb.js";

const gzip = promisify(zlibGzip);
const MOST_REQUEST_BYTES = 1 << 20;
const MOST_ANSWER_BYTES = 256 << 20;
const TIMELINE_STEPS = 200;
/** A quarter of the usual level's time, for answers that are about 7 % longer. */
const quickGzip = (bytes: Uint8Array) => gzip(bytes, { level: constants.Z_BEST_SPEED });

export interface GrafanaParts {
  readonly store: Store;
  readonly allowed: MiddlewareHandler;
  readonly fail: (error: unknown) => void;
  /** How much of the selected processes that many instances with profiles are, over that time. */
  readonly coverageOf: (
    store: Store,
    of: ProfileQuery["of"],
    profile: Pick<WindowProfile, "instances" | "reported">,
  ) => Promise<CoverageJson>;
}

export function addGrafana(app: Hono, { store, allowed, fail, coverageOf }: GrafanaParts): void {
  const plainErrors: Interceptor = (next) => async (request) => {
    try {
      return await next(request);
    } catch (error) {
      if (error instanceof TidemarkError) {
        const code = isOfDatabase(error) ? Code.Unavailable : Code.InvalidArgument;
        throw new ConnectError(error.message, code);
      }
      if (!(error instanceof ConnectError)) {
        fail(error);
        throw new ConnectError("something went wrong inside the server", Code.Internal);
      }
      throw error;
    }
  };
  const router = createConnectRouter({
    grpc: false,
    grpcWeb: false,
    acceptCompression: [{ ...compressionGzip, compress: quickGzip }],
    readMaxBytes: MOST_REQUEST_BYTES,
    writeMaxBytes: MOST_ANSWER_BYTES,
    jsonOptions: { ignoreUnknownFields: true },
    interceptors: [plainErrors],
  });
  router.service(QuerierService, querier(store));
  for (const handler of router.handlers) {
    const answer = createFetchHandler(handler);
    app.post(handler.requestPath, allowed, (context) => answer(context.req.raw));
  }
  app.get("/pyroscope/render", allowed, async (context) => {
    const { searchParams: query } = new URL(context.req.url);
    const { type, ...side } = sideIn(query, "");
    const profile = await merged(store, side);
    const graph = flamebearer(profile, type.figure, nodesIn(query));
    const { startMs, endMs } = windowOf(side.start, side.end);
    const stepMs = Math.max(1000, Math.ceil((endMs - startMs) / TIMELINE_STEPS));
    const matchers = seriesMatchers([side.labelSelector]);
    const asked = { startMs, endMs, matchers, figure: type.figure, groupBy: [], stepMs };
    const [series] = await store.figureSeries(asked);
    const coverage = await coverageOf(store, matchers, {
      ...{ instances: profile.instances, reported: { startMs, endMs } },
    });
    return context.json({
      version: 1,
      flamebearer: bearerJson(graph),
      metadata: metadata(type, "single"),
      timeline: {
        startTime: Math.floor(startMs / 1000),
        samples: (series?.values ?? []).map((value) => Math.round(value ?? 0)),
        durationDelta: Math.round(stepMs / 1000),
      },
      groups: {},
      coverage, // not Pyroscope's; its clients ignore it
    });
  });
  app.get("/pyroscope/render-diff", allowed, async (context) => {
    const { searchParams: query } = new URL(context.req.url);
    const { type, ...left } = sideIn(query, "left");
    const { type: _, ...right } = sideIn(query, "right");
    const [a, b] = [await merged(store, left), await merged(store, right)];
    const graph = flamebearerDiff(a, b, type.figure, nodesIn(query));
    return context.json({
      version: 1,
      flamebearer: bearerJson(graph),
      metadata: metadata(type, "double"),
      leftTicks: graph.leftTicks,
      rightTicks: graph.rightTicks,
    });
  });
}

function bearerJson({ names, levels, total, maxSelf }: ReturnType<typeof flamebearer>) {
  return { names, levels, numTicks: total, maxSelf };
}

function metadata({ sampleType, unit }: MemoryType, format: "single" | "double") {
  const units = unit === "bytes" ? "bytes" : "objects";
  return { format, spyName: "", sampleRate: 100, units, name: sampleType };
}

/** `query`, `from` and `until`, or those of one side of a comparison, such as `leftQuery`. Throws TidemarkError. */
function sideIn(query: URLSearchParams, side: "" | "left" | "right") {
  const named = (name: string) =>
    query.get(side === "" ? name : `${side}${name[0]?.toUpperCase()}${name.slice(1)}`) ?? "";
  const [, id = "", labelSelector = ""] = /^([^{]*)(\{.*\})?\s*$/s.exec(named("query")) ?? [];
  const nowMs = Date.now();
  return {
    type: memoryType(id.trim()),
    labelSelector,
    start: BigInt(Math.round(momentIn(named("from") || "now-1h", nowMs))),
    end: BigInt(Math.round(momentIn(named("until") || "now", nowMs))),
  };
}

const MS_PER_UNIT: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** "now", "now-1h", or seconds or ms since 1970. Throws TidemarkError. */
function momentIn(text: string, nowMs: number): number {
  const [, amount = "0", unit = "s"] = /^now(?:-(\d{1,9})([smhdw]))?$/.exec(text) ?? [];
  if (text.startsWith("now") && /^now(-\d{1,9}[smhdw])?$/.test(text)) {
    return nowMs - Number(amount) * (MS_PER_UNIT[unit] ?? 0);
  }
  if (!/^\d{1,14}$/.test(text)) {
    throw badUsage("from and until are not times", "use values such as now-1h, or ms since 1970");
  }
  return Number(text) < 1e11 ? Number(text) * 1000 : Number(text);
}

function nodesIn(query: URLSearchParams): number {
  const text = query.get("maxNodes") ?? query.get("max-nodes") ?? "";
  const nodes = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  return nodes > 0 ? nodes : USUAL_NODES;
}
