// A JSON Schema for each document that Tidemark promises, from the types of src/model/documents.ts.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createGenerator } from "ts-json-schema-generator";

const documentsPath = fileURLToPath(new URL("../../src/model/documents.ts", import.meta.url));
const projectPath = fileURLToPath(new URL("../../tsconfig.json", import.meta.url));

/** What the field `"schema"` of a type says: every type with such a field is a document. */
const DOCUMENT = /export interface (\w+Json) \{\s*schema: "tidemark\.(\w+)\/(\d+)";/g;

/** @returns {Map<string, string>} path in the repository -> text */
export function jsonSchemas() {
  const generator = createGenerator({
    path: documentsPath,
    tsconfig: projectPath,
    topRef: false,
    // A version gains optional keys: readers must not refuse those they do not know.
    additionalProperties: true,
    skipTypeCheck: true,
  });
  const schemas = new Map();
  for (const [, type, name, version] of readFileSync(documentsPath, "utf8").matchAll(DOCUMENT)) {
    const schema = {
      title: `tidemark.${name}/${version}`,
      ...generator.createSchema(type),
    };
    schemas.set(`docs/json/${name}-${version}.json`, `${JSON.stringify(schema, null, 2)}\n`);
  }
  return schemas;
}
