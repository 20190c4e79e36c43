import type { Context } from "hono";
import type { TidemarkError } from "../../model/errors/errors.js";

export const JSON_TYPE = "application/json; charset=UTF-8";

/** The variable of a request's context that has the reason of its refusal. */
export const REFUSED = "refused";

export type RefusalStatus = 400 | 401 | 403 | 404 | 409 | 413 | 415 | 500 | 503;

const STATUS_OF: Readonly<Record<string, RefusalStatus>> = {
  "TM-E008": 413,
  "TM-E014": 404,
  // The question was right: the same may succeed later.
  "TM-E084": 503,
};

export function statusOf({ id }: TidemarkError): RefusalStatus {
  return STATUS_OF[id] ?? 400;
}

/** `what`: what happened, without the code and the next step, for pages that offer links instead of commands. */
export function refusal(
  context: Context,
  status: RefusalStatus,
  error: string,
  what?: string,
): Response {
  context.set(REFUSED, error);
  return context.body(refusalText(error, CONNECT_CODES[status], what), status, {
    "content-type": JSON_TYPE,
  });
}

/** One line for people, as JSON. `message` is what clients of Connect read. */
export function refusalText(error: string, code: string, what?: string): string {
  const about = { error, code, message: error };
  return `${JSON.stringify(what === undefined ? about : { ...about, what })}\n`;
}

/** https://connectrpc.com/docs/protocol/#error-codes */
const CONNECT_CODES: Readonly<Record<RefusalStatus, string>> = {
  400: "invalid_argument",
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  409: "failed_precondition",
  413: "resource_exhausted",
  415: "invalid_argument",
  500: "internal",
  503: "unavailable",
};
