/** The routes of actions: collectors ask for leases and report; people read the list. */
import type { Context, Hono, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { ActionJson } from "../../model/documents/action_document.js";
import { badUsage } from "../../model/errors/errors.js";
import { ACTION_RECORD } from "../../model/wire/action_record.js";
import type { ActionBook } from "../actions/action_book.js";
import type { ActionLimits } from "../actions/action_limits.js";
import { refusal } from "../answers/refusal.js";
import { ACTIONS, LEASES, REPORT } from "./api_routes.js";
import { valuesIn } from "./parameters.js";

/** A decision about an action, for the log. */
export interface ActionAudit {
  readonly did: "lease" | "action";
  readonly [detail: string]: unknown;
}

export interface ActionRoutes {
  readonly book: ActionBook;
  readonly limits: () => ActionLimits;
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
  { book, limits, allowed, own, audit, changed }: ActionRoutes,
): void {
  app.get(ACTIONS.path, (context) => {
    const { service } = valuesIn(context.req.url, ACTIONS.parameters);
    return context.json(book.document(limits(), service, Date.now()));
  });
  const limit = bodyLimit({
    maxSize: MOST_BYTES,
    onError: (context) =>
      refusal(context, 413, `the body is too large: the limit is ${MOST_BYTES >> 10} KiB`),
  });
  app.post(LEASES.path, allowed, own, limit, async (context) => {
    const wanted = await actionIn(context);
    const answer = book.lease(wanted, limits(), Date.now());
    audit({ did: "lease", ...detailsOf(wanted), ...answer });
    changed();
    return context.json(answer);
  });
  app.post(REPORT.path, allowed, own, limit, async (context) => {
    const action = await actionIn(context);
    const why = book.report(action);
    audit({ did: "action", ...detailsOf(action), ...(why === "" ? {} : { refused: why }) });
    if (why !== "") {
      return refusal(context, 409, why);
    }
    changed();
    return context.json({ taken: true });
  });
}

async function actionIn(context: Context): Promise<ActionJson> {
  const parsed = ACTION_RECORD.safeParse(await context.req.json().catch(() => null));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw badUsage(
      `the body is not as expected: ${[...(issue?.path ?? []), issue?.message].join(": ")}`,
      "see /api/openapi.json",
    );
  }
  return parsed.data as ActionJson;
}

function detailsOf({ id, service, version, host, pid, what, state, reason, why }: ActionJson) {
  return { id, service, version, host, pid, what, state, reason, why };
}
