/**
 * Every route of a server with tokens: who is refused, and who is not. The routes are those that the program registers, so
 * a new one is tested without being listed here.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FLEET_PAGES_PATH } from "../../src/cli/files/server_files.js";
import { API_ROUTES } from "../../src/server/http/api_routes.js";
import { type AppParts, buildApp } from "../../src/server/http/app.js";
import { SCOPES, type Scope } from "../../src/server/http/tokens.js";
import { removeScratch, scratch } from "../run.js";
import { ask, type RunningServer, startServer } from "./running_server.js";

const tokenOf = (scope: Scope) => `${scope}-token-of-the-tests`;

/** What needs no token, and why. */
const OPEN: readonly [route: RegExp, why: string][] = [
  [/^GET \/(healthz|readyz)$/, "probes have no token, and learn only that the server runs"],
  [/^GET \/info$/, "Datadog's libraries ask before they send; the answer is fixed"],
  [/^GET \/api\/openapi\.json$/, "the document is the same for every server"],
  [/^GET \/assets\/[\w.-]+$/, "scripts and styles of the pages, the same for every server"],
  [
    /^GET \/(service|verdicts|alerts|sizes|actions|artifacts|artifacts\/:id\/:name|ingest|instance\/:stream)?$/,
    "the page's HTML, which asks for a token and then for data",
  ],
];

/** Paths and methods that the program registers; a middleware has the method ALL. */
const parts = { pages: FLEET_PAGES_PATH, tokens: {}, store: {}, hosts: null };
const registered = buildApp(parts as unknown as AppParts).routes;
const routes = [
  ...new Map(
    registered
      .filter(({ method }) => method !== "ALL")
      .map(({ method, path }) => [`${method} ${path}`, { method, path }] as const),
  ).values(),
];
const nameOf = ({ method, path }: { method: string; path: string }) =>
  `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`;
const isOpen = (route: { method: string; path: string }) =>
  OPEN.some(([form]) => form.test(nameOf(route)));
const declared = (route: { method: string; path: string }) =>
  API_ROUTES.find((known) => nameOf(known) === nameOf(route));
const guarded = routes.filter((route) => !isOpen(route));

let server: RunningServer;
beforeAll(async () => {
  const folder = scratch();
  const file = join(folder, "tokens");
  writeFileSync(file, SCOPES.map((scope) => `${scope} ${tokenOf(scope)}\n`).join(""));
  server = await startServer(join(folder, "data"), { options: ["--token-file", file] });
});
afterAll(async () => {
  await server.kill();
  removeScratch();
});

/** Parameters of a path are replaced by something that fits. */
const addressOf = (path: string) => path.replaceAll(/:\w+/g, "0123456789abcdef0123456789abcdef");

async function statusOf(method: string, path: string, authorization?: string): Promise<number> {
  const ended = new AbortController();
  const response = await fetch(`${server.url}${addressOf(path)}`, {
    method,
    headers: authorization === undefined ? {} : { authorization },
    signal: ended.signal,
  });
  // Server-sent events do not end by themselves.
  ended.abort();
  return response.status;
}

test("there are routes, and each is in the OpenAPI document or open with a reason", () => {
  expect(guarded.length).toBeGreaterThan(30);
  expect(guarded.filter((route) => declared(route) === undefined)).toEqual([]);
  // A route that is declared as open is open here, too, and the other way round.
  expect(API_ROUTES.filter((route) => route.scope === null && !isOpen(route))).toEqual([]);
  expect(guarded.filter((route) => declared(route)?.scope === null)).toEqual([]);
  // Each reason is about a route that exists.
  const unused = OPEN.filter(([form]) => !routes.some((route) => form.test(nameOf(route))));
  expect(unused).toEqual([]);
});

describe.each(guarded)("$method $path", ({ method, path }) => {
  const { scope } = declared({ method, path }) ?? {};

  test("is refused without a token, with a wrong one, and with one of another scope", async () => {
    const others = SCOPES.filter((other) => other !== scope && other !== "admin");
    const refused: Record<string, string | undefined> = {
      none: undefined,
      empty: "Bearer ",
      wrong: "Bearer 0123456789abcdef0123",
      "of another kind": `Basic ${Buffer.from(`read:${tokenOf("read")}`).toString("base64")}`,
      ...Object.fromEntries(others.map((other) => [other, `Bearer ${tokenOf(other)}`])),
    };
    for (const [name, authorization] of Object.entries(refused)) {
      expect([name, await statusOf(method, path, authorization)]).toEqual([name, 401]);
    }
    if (method === "GET") {
      expect(await statusOf("HEAD", path)).toBe(401);
    }
    const { body, headers } = await ask(`${server.url}${addressOf(path)}`, { method });
    expect(headers.get("www-authenticate")).toBe("Bearer");
    expect((body as { error: string }).error).toMatch(/^this needs a token of scope \w+$/);
  });

  test("is not refused with a token of its scope, or an administrator's", async () => {
    for (const name of [scope as Scope, "admin"] as const) {
      expect([401, 403]).not.toContain(await statusOf(method, path, `Bearer ${tokenOf(name)}`));
    }
  });
});

test("another spelling of a path leads around no token", async () => {
  const paths = API_ROUTES.filter(({ scope }) => scope !== null).map(({ path }) =>
    path.replaceAll(/\{\w+\}/g, "0123456789abcdef0123456789abcdef"),
  );
  for (const path of paths) {
    const spellings = [
      `${path}/`,
      `/${path}`,
      path.replace(/\/(\w)/g, "//$1"),
      path.replace(/[a-z]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
      path.toUpperCase(),
      `/x/..${path}`,
      `${path};x`,
      `${path}%00`,
    ];
    for (const spelling of spellings) {
      for (const method of ["GET", "POST", "PUT", "DELETE", "OPTIONS"]) {
        const { status, headers } = await ask(`${server.url}${addressOf(spelling)}`, { method });
        // The page Ingest has the address to which SDKs post.
        if (method === "GET" && headers.get("content-type")?.startsWith("text/html")) {
          continue;
        }
        expect([401, 404], `${method} ${spelling}`).toContain(status);
      }
    }
  }
});
