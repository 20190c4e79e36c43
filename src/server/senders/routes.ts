/** The addresses that other profilers send to. Each request is decoded as a whole before any of it is stored. */
import type { Context, Hono, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { badUsage } from "../../model/errors/errors.js";
import { refusal } from "../answers/refusal.js";
import { implausibleMoment } from "../ingest/plausible_times.js";
import { decodedBody } from "./formats/body.js";
import { decodeDatadog } from "./formats/datadog.js";
import { decodeOtlp } from "./formats/otlp.js";
import { decodePush } from "./formats/push.js";
import { decodeIngest } from "./formats/pyroscope_ingest.js";
import { PROFILE_LIMITS, type ReceivedProfile } from "./formats/received_profile.js";
import type { SenderStreams } from "./sender_streams.js";

export const PUSH_PATH = "/push.v1.PusherService/Push";
export const OTLP_PATH = "/v1development/profiles";
export const DATADOG_PATH = "/profiling/v1/input";
const INGEST_PATHS = ["/ingest", "/pyroscope/ingest"];

type Decode = (body: Buffer, context: Context) => ReceivedProfile[] | Promise<ReceivedProfile[]>;

export function addSenders(app: Hono, senders: SenderStreams, allowed: MiddlewareHandler): void {
  const limit = bodyLimit({
    maxSize: PROFILE_LIMITS["request-bytes"],
    onError: (context) =>
      refusal(
        context,
        413,
        `the body is too large: the limit request-bytes is ${PROFILE_LIMITS["request-bytes"] >> 20} MiB`,
      ),
  });
  const take = (path: string, decode: Decode, answer: (context: Context) => Response) => {
    app.post(path, allowed, limit, async (context) => {
      const sent = Buffer.from(await context.req.arrayBuffer());
      const body = decodedBody(sent, context.req.header("content-encoding"));
      const profiles = (await decode(body, context)).map(dated);
      const { status, error } = await senders.accept(profiles);
      return status === 200 ? answer(context) : refusal(context, status, error ?? "refused");
    });
  };
  for (const path of INGEST_PATHS) {
    take(
      path,
      (body, context) => {
        const { searchParams } = new URL(context.req.url);
        return decodeIngest(body, searchParams, typeOf(context));
      },
      (context) => context.body(null, 200),
    );
  }
  take(
    PUSH_PATH,
    (body, context) => decodePush(body, isJson(context)),
    (context) =>
      isJson(context)
        ? context.json({})
        : context.body(new Uint8Array(0), 200, { "content-type": "application/proto" }),
  );
  take(
    OTLP_PATH,
    (body, context) => {
      if (isJson(context)) {
        throw badUsage(
          "OTLP profiles are accepted only as protocol buffers",
          "set OTEL's protocol to http/protobuf",
        );
      }
      return decodeOtlp(body);
    },
    (context) => context.body(new Uint8Array(0), 200, { "content-type": "application/x-protobuf" }),
  );
  take(
    DATADOG_PATH,
    (body, context) => decodeDatadog(body, typeOf(context)),
    (context) => context.json({}),
  );
  // Datadog's libraries first request the endpoints that an agent supports.
  app.get("/info", (context) => context.json({ version: "7.0.0", endpoints: [DATADOG_PATH] }));
}

/** A profile without a time gets the current time. Throws TidemarkError for a time that no correct clock shows. */
function dated(profile: ReceivedProfile): ReceivedProfile {
  const nowMs = Date.now();
  const timeMs = profile.timeMs === 0 ? nowMs : profile.timeMs;
  const implausible = implausibleMoment(timeMs, nowMs, "the profile is");
  if (implausible !== null) {
    throw badUsage(implausible, "");
  }
  return { ...profile, timeMs };
}

function typeOf(context: Context): string {
  return context.req.header("content-type") ?? "";
}

function isJson(context: Context): boolean {
  return typeOf(context).startsWith("application/json");
}
