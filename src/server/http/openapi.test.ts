/** The OpenAPI document: every route of the server is in it, and it describes nothing else. */
import { expect, test } from "vitest";
import { type AppParts, buildApp } from "./app.js";
import { openApiDocument } from "./openapi.js";

type Document = {
  paths: Record<string, Record<string, { operationId: string }>>;
  components: { schemas: Record<string, unknown> };
};
const document = openApiDocument() as Document;

/** What a browser loads, and what answers for the others. */
const PAGES = new Set([
  "/",
  "/service",
  "/verdicts",
  "/sizes",
  "/actions",
  "/alerts",
  "/artifacts",
  "/artifacts/:id/:name",
  "/ingest",
  "/instance/:stream",
  "/assets/*",
  "/api/*",
  "/api/v1/*",
  "/*",
]);

test("it has every route of the server, and no other", () => {
  const parts = { pages: "/nowhere", tokens: {}, store: {}, hosts: null };
  const routes = buildApp(parts as unknown as AppParts).routes.filter(
    ({ path, method }) => !(method === "GET" && PAGES.has(path)) && method !== "ALL",
  );
  const served = new Set(
    routes.map(
      ({ method, path }) => `${method.toLowerCase()} ${path.replaceAll(/:(\w+)/g, "{$1}")}`,
    ),
  );
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );
  expect(described.sort()).toEqual([...served].sort());
});

test("names of operations are unique, and references lead somewhere", () => {
  const ids = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
  const { schemas } = document.components;
  for (const [, name = ""] of JSON.stringify(document).matchAll(/"\$ref":"([^"]*)"/g)) {
    expect(schemas).toHaveProperty([name.replace("#/components/schemas/", "")]);
  }
});
