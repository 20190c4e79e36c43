/** The routes of requests: people ask for profiles, collectors fetch what is asked and the policy. */
import type { Context, Hono, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { z } from "zod";
import { badUsage } from "../../model/errors/errors.js";
import { COLLECTOR_CALL, type CollectorAnswer, WANTED_REQUEST } from "../../model/wire/requests.js";
import type { KnownNames } from "../answers/known_names.js";
import { refusal } from "../answers/refusal.js";
import type { RequestBook } from "../requests/request_book.js";
import { COLLECTOR, REQUESTS, WANTED } from "./collector_routes.js";
import { valuesIn } from "./parameters.js";

/** A request of a person, for the log. */
export interface RequestAudit {
  readonly did: "request";
  readonly [detail: string]: unknown;
}

export interface RequestRoutes {
  readonly book: RequestBook;
  readonly names: KnownNames;
  /** The policy that collectors get; null: none; undefined: it cannot be read. */
  readonly policy: () => string | null | undefined;
  /** Lets through who may ask for profiles. */
  readonly admin: MiddlewareHandler;
  /** Lets through collectors. */
  readonly collector: MiddlewareHandler;
  /** Refuses pages of other sites. */
  readonly own: MiddlewareHandler;
  readonly audit: (line: RequestAudit) => void;
  readonly changed: () => void;
}

const MOST_BYTES = 65_536;

export function addRequests(
  app: Hono,
  { book, names, policy, admin, collector, own, audit, changed }: RequestRoutes,
): void {
  const limit = bodyLimit({
    maxSize: MOST_BYTES,
    onError: (context) =>
      refusal(context, 413, `the body is too large: the limit is ${MOST_BYTES >> 10} KiB`),
  });
  app.get(REQUESTS.path, async (context) => {
    const { service } = valuesIn(context.req.url, REQUESTS.parameters);
    const document = book.document(service);
    if (service !== undefined && document.requests.length === 0) {
      await names.mustKnow(service);
    }
    return context.json(document);
  });
  app.post(WANTED.path, admin, own, limit, async (context) => {
    const wanted = await bodyIn(context, WANTED_REQUEST);
    await names.mustKnow(wanted.service);
    const made = book.add(wanted, Date.now());
    const refused = typeof made === "string" ? { refused: made } : { id: made.id };
    audit({ did: "request", ...wanted, ...refused });
    if (typeof made === "string") {
      return refusal(context, 409, made);
    }
    changed();
    return context.json(made);
  });
  app.post(COLLECTOR.path, collector, own, limit, async (context) => {
    const call = await bodyIn(context, COLLECTOR_CALL);
    const nowMs = Date.now();
    if (book.answered(call, nowMs)) {
      changed();
    }
    const text = policy();
    const open = book.open(nowMs).map((request) => ({ ...request, hosts: [] }));
    const answer: CollectorAnswer = {
      nowMs,
      ...(text === undefined ? {} : { policy: text }),
      requests: open.filter(({ programs, captures }) => (programs ?? captures) === undefined),
      named: open.filter(({ programs }) => programs !== undefined),
      captures: open.filter(({ captures }) => captures !== undefined),
    };
    return context.json(answer);
  });
}

async function bodyIn<Form extends z.ZodType>(
  context: Context,
  form: Form,
): Promise<z.infer<Form>> {
  const parsed = form.safeParse(await context.req.json().catch(() => null));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw badUsage(
      `the body is not as expected: ${[...(issue?.path ?? []), issue?.message].join(": ")}`,
      "see /api/openapi.json",
    );
  }
  return parsed.data;
}
