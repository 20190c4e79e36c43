// JSON Schemas (for editors and CI) of the YAML files that users write, from the forms that the program checks.
import { formatted } from "./source_files.mjs";

/** @returns {Promise<Map<string, string>>} path in the repository -> text */
export async function configForm() {
  const { configSchema } = await import("../../dist/server/config.js");
  const { policySchema } = await import("../../dist/collect/policy/policy.js");
  const schemas = {
    "docs/serve-config.schema.json": { title: "tidemark serve --config", ...configSchema() },
    "docs/watch-config.schema.json": { title: "tidemark watch --config", ...policySchema() },
  };
  return new Map(
    Object.entries(schemas).map(([path, schema]) => [
      path,
      formatted(path, JSON.stringify(schema, null, 2)),
    ]),
  );
}
