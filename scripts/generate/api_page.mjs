// docs/openapi.json and docs/api.md, from the routes that the server declares.
import { formatted } from "./source_files.mjs";

/** @returns {Promise<Map<string, string>>} path in the repository -> text; needs a build */
export async function apiPage() {
  const { openApiDocument } = await import("../../dist/server/http/openapi.js");
  const document = openApiDocument();
  return new Map([
    ["docs/openapi.json", formatted("docs/openapi.json", JSON.stringify(document, null, 2))],
    ["docs/api.md", pageOf(document)],
  ]);
}

const GROUPS = {
  services: "Services",
  sending: "Sending",
  grafana: "Grafana",
  operation: "Operation",
};

/** @param {any} document */
function pageOf(document) {
  /** @type {[string, any][]} */
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]) =>
        /** @type {[string, any]} */ ([`${method.toUpperCase()} ${path}`, operation]),
    ),
  );
  const lines = [
    "# HTTP API",
    "",
    "Look up a route of `tidemark serve` here. `npm run generate` makes this page and [openapi.json](openapi.json) from the",
    "server's declarations. A running server serves it at `/api/openapi.json`.",
    "",
    "```",
    "$ curl -s 'http://127.0.0.1:7070/api/v1/series?service=checkout&name=rssBytes&by=version'",
    "```",
    "",
    document.info.description,
    "",
    "If the server has a token file, a route needs the header `Authorization: Bearer TOKEN` with a token of the scope that is",
    'named here, or of scope `admin`. An error is `{"error": "one line"}` with its HTTP status.',
    "",
  ];
  for (const [group, title] of Object.entries(GROUPS)) {
    lines.push(`## ${title}`, "");
    for (const [name, operation] of operations.filter(([, { tags }]) => tags[0] === group)) {
      lines.push(...routeLines(name, operation));
    }
  }
  return `${lines.join("\n").trimEnd()}\n`;
}

/** @param {string} name @param {any} operation */
function routeLines(name, operation) {
  const scope = operation["x-scope"];
  /** @type {[string, any][]} */
  const [[type, content] = ["", {}]] = Object.entries(operation.responses["200"].content);
  const answer = content.schema?.$ref?.split("/").at(-1);
  const body = Object.keys(operation.requestBody?.content ?? {});
  const facts = [
    scope === undefined ? "No token" : `Scope \`${scope}\``,
    ...(body.length === 0 ? [] : [`takes ${body.map((one) => `\`${one}\``).join(" or ")}`]),
    `answers \`${type}\`${answer === undefined ? "" : ` (\`${answer}\`)`}`,
  ];
  const parameters = operation.parameters.map(
    (/** @type {any} */ { name: parameter, required, schema, description }) =>
      `| \`${parameter}\`${required ? " (required)" : ""} | ${formOf(schema)} | ${description} |`,
  );
  return [
    `### ${name}`,
    "",
    operation.summary,
    `${facts.join("; ")}.`,
    "",
    ...(parameters.length === 0
      ? []
      : ["| parameter | value | meaning |", "|---|---|---|", ...parameters, ""]),
  ];
}

/** @param {any} schema */
function formOf({ type, enum: choices, minimum, maximum, default: usual, pattern, maxLength }) {
  const form =
    choices !== undefined
      ? choices.map((/** @type {string} */ choice) => `\`${choice}\``).join(", ")
      : type === "integer"
        ? `whole number, ${minimum} to ${maximum}`
        : pattern !== undefined
          ? `\`${pattern}\``
          : maxLength === undefined
            ? "text"
            : `text, at most ${maxLength} characters`;
  return usual === undefined ? form : `${form}; default \`${usual}\``;
}
