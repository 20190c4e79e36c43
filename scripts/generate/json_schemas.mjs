// A JSON Schema for each document that Tidemark promises, from the types of src/model/documents/documents.ts and
// the NAME_document.ts next to it and in its sub-folders.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createGenerator } from "ts-json-schema-generator";

const modelPath = fileURLToPath(new URL("../../src/model/documents/", import.meta.url));
const projectPath = fileURLToPath(new URL("../../tsconfig.json", import.meta.url));

/** The value of a type's `"schema"` field; every type with such a field is a document. */
const DOCUMENT = /export interface (\w+Json) \{\s*schema: "tidemark\.(\w+)\/(\d+)";/g;

/** @returns {Map<string, string>} path in the repository -> text */
export function jsonSchemas() {
  const folders = readdirSync(modelPath, { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  );
  const sources = ["", ...folders.map(({ name }) => `${name}/`)].flatMap((folder) =>
    readdirSync(`${modelPath}${folder}`)
      .filter((name) => /^(documents|\w+_document)\.ts$/.test(name))
      .map((name) => `${folder}${name}`),
  );
  return new Map(sources.sort().flatMap((name) => schemasOf(`${modelPath}${name}`)));
}

/** @param {string} path @returns {[string, string][]} */
function schemasOf(path) {
  const found = [...readFileSync(path, "utf8").matchAll(DOCUMENT)];
  if (found.length === 0) {
    return [];
  }
  const generator = createGenerator({
    path,
    tsconfig: projectPath,
    topRef: false,
    // Optional keys may be added within a version, so readers must accept unknown keys.
    additionalProperties: true,
    skipTypeCheck: true,
  });
  return found.map(([, type, name, version]) => {
    const schema = { title: `tidemark.${name}/${version}`, ...generator.createSchema(type) };
    return [`docs/json/${name}-${version}.json`, `${JSON.stringify(schema, null, 2)}\n`];
  });
}
