/** The API's OpenAPI document (https://spec.openapis.org/oas/v3.1.0), made from the routes and the types of answers. */
import { PARTIAL_HEADER } from "../../model/wire/partial.js";
import { ANSWER_SCHEMAS } from "./answer_schemas.js";
import { API_ROUTES } from "./api_routes.js";
import type { ApiRoute } from "./declared_route.js";

const ERROR = {
  description: "One line that describes the error.",
  content: { "application/json": { schema: answerSchema("error") } },
};

export function openApiDocument(): object {
  const paths = new Map<string, Record<string, object>>();
  for (const route of API_ROUTES) {
    paths.set(route.path, { ...paths.get(route.path), [route.method]: operationOf(route) });
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Tidemark",
      version: "1",
      description:
        "Times are in ms since 1970, sizes in bytes. Without from and to, the window is the last hour. " +
        "Answers may gain keys within a version; ignore unknown keys. " +
        "If some shards of the database do not answer, an answer is made from the others: it has the header " +
        `\`${PARTIAL_HEADER}\` and, in JSON, the field \`partial\`, \`{shards, missing}\`.`,
    },
    paths: Object.fromEntries(paths),
    components: {
      schemas: ANSWER_SCHEMAS.definitions,
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description:
            "Needed if the server was started with a token file. Scopes: ingest, read, act, admin.",
        },
      },
    },
  };
}

function operationOf({ summary, group, scope, parameters, body, answer, path, method }: ApiRoute) {
  const type = "json" in answer ? "application/json" : answer.type;
  const schema = "json" in answer ? { schema: answerSchema(answer.json) } : {};
  return {
    operationId: `${method}${path.replace(/[/.{}]+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary,
    tags: [group],
    security: scope === null ? [] : [{ token: [] }],
    ...(scope === null ? {} : { "x-scope": scope }),
    parameters: [
      ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
        ...{ name, in: "path", required: true, schema: { type: "string" } },
        description: "Part of the address.",
      })),
      ...Object.entries(parameters).map(([name, { says, isRequired, schema: form }]) => ({
        name,
        in: "query",
        description: says,
        required: isRequired,
        schema: form,
      })),
    ],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: Object.fromEntries(body.map((name) => [name, {}])),
          },
        }),
    responses: {
      "200": { description: "The answer.", content: { [type]: schema } },
      default: ERROR,
    },
  };
}

function answerSchema(name: keyof typeof ANSWER_SCHEMAS.properties): object {
  return ANSWER_SCHEMAS.properties[name];
}
