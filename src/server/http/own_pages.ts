/** Refuses changes that a page of another site makes a browser ask for. */
import type { MiddlewareHandler } from "hono";
import { refusal } from "../answers/refusal.js";

/**
 * A page of another site can make a browser post to a server on loopback, which needs no token. It cannot set this type
 * without asking first, and a browser names its origin. Behind a proxy the pages have the origin of `externalUrl`.
 */
export function ownPagesOnly(externalUrl: () => string | null): MiddlewareHandler {
  return async (context, next) => {
    const type = context.req.header("content-type") ?? "";
    if (!/^application\/json(?:;|$)/i.test(type)) {
      return refusal(context, 415, "the body must be application/json");
    }
    const origin = context.req.header("origin");
    const url = externalUrl();
    const hosts = [context.req.header("host"), url === null ? undefined : new URL(url).host];
    const isOwn =
      origin === undefined || (URL.canParse(origin) && hosts.includes(new URL(origin).host));
    if (!isOwn) {
      return refusal(
        context,
        403,
        "requests from pages of other sites are refused; behind a proxy, set alerts.url",
      );
    }
    await next();
    return undefined;
  };
}
