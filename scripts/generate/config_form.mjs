// The JSON Schema of the configuration of `tidemark serve`, from the form that the program checks it by.
import { formatted } from "./source_files.mjs";

/** @returns {Promise<Map<string, string>>} path in the repository -> text */
export async function configForm() {
  const { configSchema } = await import("../../dist/server/config.js");
  const schema = { title: "tidemark serve --config", ...configSchema() };
  const path = "docs/serve-config.schema.json";
  return new Map([[path, formatted(path, JSON.stringify(schema, null, 2))]]);
}
