/** The routes of actions: collectors ask for leases and evictions, and report; people read the list. */
import type { Context, Hono, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { z } from "zod";
import type { ActionJson } from "../../model/documents/action_document.js";
import { badUsage } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { ACTION_RECORD, EVICTION } from "../../model/wire/action_record.js";
import type { ActionBook } from "../actions/action_book.js";
import type { ActionLimits } from "../actions/action_limits.js";
import type { Evictions } from "../actions/evictions.js";
import type { KnownNames } from "../answers/known_names.js";
import { refusal } from "../answers/refusal.js";
import { ACTIONS, EVICT, LEASES, REPORT } from "./collector_routes.js";
import { valuesIn } from "./parameters.js";

/** A decision about an action, for the log. */
export interface ActionAudit {
  readonly did: "lease" | "evict" | "action";
  readonly [detail: string]: unknown;
}

export interface ActionRoutes {
  readonly book: ActionBook;
  readonly names: KnownNames;
  readonly limits: () => ActionLimits;
  readonly evictions: Evictions;
  /** Lets through who may act. */
  readonly allowed: MiddlewareHandler;
  /** Refuses pages of other sites. */
  readonly own: MiddlewareHandler;
  readonly audit: (line: ActionAudit) => void;
  readonly changed: () => void;
}

const MOST_BYTES = 65_536;

export function addActions(
  app: Hono,
  { book, names, limits, evictions, allowed, own, audit, changed }: ActionRoutes,
): void {
  app.get(ACTIONS.path, async (context) => {
    const { service } = valuesIn(context.req.url, ACTIONS.parameters);
    const document = book.document(limits(), service, Date.now());
    if (service !== undefined && document.actions.length === 0) {
      await names.mustKnow(service);
    }
    return context.json(document);
  });
  const limit = bodyLimit({
    maxSize: MOST_BYTES,
    onError: (context) =>
      refusal(context, 413, `the body is too large: the limit is ${MOST_BYTES >> 10} KiB`),
  });
  app.post(LEASES.path, allowed, own, limit, async (context) => {
    const wanted = (await bodyIn(context, ACTION_RECORD)) as ActionJson;
    const why = evictions.forbids(wanted);
    const answer =
      why === "" ? book.lease(wanted, limits(), Date.now()) : { granted: false as const, why };
    audit({ did: "lease", ...detailsOf(wanted), ...answer });
    changed();
    return context.json(answer);
  });
  app.post(EVICT.path, allowed, own, limit, async (context) => {
    const { id, pod } = await bodyIn(context, EVICTION);
    try {
      const answer = await evictions.evict(id, pod, Date.now());
      audit({ did: "evict", id, ...pod, ...answer });
      return context.json(answer);
    } catch (error) {
      const why = `the API server may have evicted the pod: ${reasonOf(error).message}`;
      audit({ did: "evict", id, ...pod, why });
      return refusal(context, 503, why);
    }
  });
  app.post(REPORT.path, allowed, own, limit, async (context) => {
    const action = (await bodyIn(context, ACTION_RECORD)) as ActionJson;
    const why = book.report(action);
    audit({ did: "action", ...detailsOf(action), ...(why === "" ? {} : { refused: why }) });
    if (why !== "") {
      return refusal(context, 409, why);
    }
    changed();
    return context.json({ taken: true });
  });
}

async function bodyIn<Body>(context: Context, form: z.ZodType<Body>): Promise<Body> {
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

function detailsOf({ id, service, version, host, pid, what, pod, ...rest }: ActionJson) {
  const { state, reason, why } = rest;
  return { id, service, version, host, pid, what, pod, state, reason, why };
}
