// The JSON Schema of the configuration of `tidemark serve`, from the form that the program checks it by.

/** @returns {Promise<Map<string, string>>} path in the repository -> text */
export async function configForm() {
  const { configSchema } = await import("../../dist/server/config.js");
  const schema = { title: "tidemark serve --config", ...configSchema() };
  return new Map([["docs/serve-config.schema.json", `${JSON.stringify(schema, null, 2)}\n`]]);
}
