/** What can be asked of the store, and the report of one instance. */

import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context, Hono } from "hono";
import { float64At, itemAt, uint8At, uint32At } from "../../model/base/columns.js";
import { encodeColumns } from "../../model/documents/columns.js";
import { nothingThere } from "../../model/errors/errors.js";
import { framesOf } from "../../model/profile/frame_text.js";
import { Domain, FrameKind } from "../../model/profile/profile.js";
import { STREAM_NAME } from "../../model/wire/frames.js";
import {
  INSTANCE_PATH,
  INSTANCE_REPORT_PATH,
  PROFILE_PATH,
  type ProfileAnswer,
  SERIES_GROUPS,
  SERIES_NAMES,
  SERIES_PATH,
  SERVICE_PATH,
  SERVICES_PATH,
} from "../../model/wire/services.js";
import type { Store, WindowProfile } from "../../store/index.js";
import { Parameters } from "./parameters.js";

export interface QueryParts {
  readonly store: Store;
  /** The report of a stream as columns. Throws TidemarkError. */
  readonly report: (stream: string) => Promise<object>;
}

const SPARKLINE_STEPS = 32;
const MOST_STEPS = 2_000;
const MOST_STACKS = 8_192;
const WINDOW = ["from", "to"];

const zipped = promisify(gzip);

export function addQueries(app: Hono, { store, report }: QueryParts): void {
  app.get(SERVICES_PATH, async (context) => {
    const query = new Parameters(context.req.url, [...WINDOW, "steps"]);
    return context.json(await store.services(query.window(), stepsIn(query)));
  });
  app.get(SERVICE_PATH, async (context) => {
    const query = new Parameters(context.req.url, [...WINDOW, "steps", "name"]);
    const name = query.needed("name");
    const document = await store.service(name, query.window(), stepsIn(query));
    if (document === null) {
      throw nothingThere(`no service is called ${name}`, "list them: tidemark fleet services");
    }
    return context.json(document);
  });
  app.get(SERIES_PATH, async (context) => {
    const known = [...WINDOW, "service", "version", "instance", "name", "by", "steps"];
    const query = new Parameters(context.req.url, known);
    const window = query.window();
    const steps = query.whole("steps", { least: 1, most: MOST_STEPS, usual: 200 });
    const stepMs = Math.max(1, Math.ceil((window.endMs - window.startMs) / steps));
    return context.json(
      await store.series({
        ...window,
        ...selectionIn(query),
        name: query.oneOf("name", SERIES_NAMES, "rssBytes"),
        by: query.oneOf("by", SERIES_GROUPS, "none"),
        stepMs,
      }),
    );
  });
  app.get(PROFILE_PATH, async (context) => {
    const known = [...WINDOW, "service", "version", "instance", "format", "top"];
    const query = new Parameters(context.req.url, known);
    const window = query.window();
    const selection = selectionIn(query);
    const format = query.oneOf("format", ["json", "columns"], "json");
    const usual = format === "json" ? 100 : MOST_STACKS;
    const mostStacks = query.whole("top", { least: 1, most: MOST_STACKS, usual });
    const profile = await store.profile({ ...window, of: selection, mostStacks });
    return format === "json"
      ? context.json(answerOf(profile, selection.service, window))
      : columns(context, { tables: profile.tables, look: profile.look });
  });
  app.get(INSTANCE_PATH, async (context) => {
    const query = new Parameters(context.req.url, ["id"]);
    const stream = query.matching("id", STREAM_NAME, "the name of a stream, 32 hex digits");
    const row = await store.instance(stream);
    if (row === null) {
      throw nothingThere("no instance has this name", "list them: tidemark fleet service NAME");
    }
    return context.json(row);
  });
  app.get(INSTANCE_REPORT_PATH, async (context) => {
    const query = new Parameters(context.req.url, ["id"]);
    const stream = query.matching("id", STREAM_NAME, "the name of a stream, 32 hex digits");
    return columns(context, await report(stream));
  });
}

function stepsIn(query: Parameters): number {
  return query.whole("steps", { least: 1, most: MOST_STEPS, usual: SPARKLINE_STEPS });
}

function selectionIn(query: Parameters) {
  const version = query.text("version");
  const stream = query.text("instance");
  return {
    service: query.needed("service"),
    ...(version === undefined ? {} : { version }),
    ...(stream === undefined ? {} : { stream }),
  };
}

/** Typed arrays as src/model/documents/columns.ts writes them. */
async function columns(context: Context, document: object): Promise<Response> {
  const plain = encodeColumns(document);
  const accepts = /\bgzip\b/.test(context.req.header("accept-encoding") ?? "");
  const bytes = accepts ? await zipped(plain, { level: 1 }) : plain;
  return context.body(new Uint8Array(bytes), 200, {
    "content-type": "application/vnd.tidemark.columns",
    ...(accepts ? { "content-encoding": "gzip" } : {}),
  });
}

const DOMAIN_NAMES = Object.keys(Domain) as (keyof typeof Domain)[];
const KIND_NAMES = Object.keys(FrameKind) as (keyof typeof FrameKind)[];

function answerOf(
  { tables, look, otherStacks }: WindowProfile,
  service: string,
  { startMs, endMs }: { startMs: number; endMs: number },
): ProfileAnswer {
  const { sites } = look;
  const sum = (column: Float64Array) => column.reduce((total, value) => total + value, 0);
  const listed = sites.length - (otherStacks > 0 ? 1 : 0);
  const last = sites.length - 1;
  return {
    service,
    startMs,
    endMs,
    liveBytes: sum(sites.liveBytes),
    allocatedBytes: sum(sites.allocatedBytes),
    stacks: Array.from({ length: listed }, (_, row) => ({
      stack: framesOf(tables, uint32At(sites.stack, row)).map((frame) => ({
        function: itemAt(tables.strings, uint32At(tables.frames.function, frame)),
        file: itemAt(tables.strings, uint32At(tables.frames.file, frame)),
        line: uint32At(tables.frames.line, frame),
        kind: KIND_NAMES[uint8At(tables.frames.kind, frame)] ?? "mark",
      })),
      domain: DOMAIN_NAMES[uint8At(sites.domain, row)] ?? "python",
      liveBytes: float64At(sites.liveBytes, row),
      liveObjects: float64At(sites.liveObjects, row),
      allocatedBytes: float64At(sites.allocatedBytes, row),
    })),
    other: {
      stacks: otherStacks,
      liveBytes: otherStacks > 0 ? float64At(sites.liveBytes, last) : 0,
      allocatedBytes: otherStacks > 0 ? float64At(sites.allocatedBytes, last) : 0,
    },
  };
}
