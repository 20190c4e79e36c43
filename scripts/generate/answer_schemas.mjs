// src/server/http/answer_schemas.ts: JSON Schemas of the API's answers, from the types in src/model/wire/.
import { fileURLToPath } from "node:url";
import { createGenerator } from "ts-json-schema-generator";
import { formatted } from "./source_files.mjs";

const path = "src/server/http/answer_schemas.ts";
const types = fileURLToPath(new URL("../../src/model/wire/api_answers.ts", import.meta.url));
const projectPath = fileURLToPath(new URL("../../tsconfig.json", import.meta.url));

/** @returns {Map<string, string>} path in the repository -> text */
export function answerSchemas() {
  const generator = createGenerator({
    path: types,
    tsconfig: projectPath,
    topRef: false,
    additionalProperties: true,
    skipTypeCheck: true,
  });
  const { properties, definitions } = generator.createSchema("ApiAnswers");
  const text = JSON.stringify({ properties, definitions }, null, 2).replaceAll(
    "#/definitions/",
    "#/components/schemas/",
  );
  return new Map([
    [
      path,
      formatted(
        path,
        `/** Made by \`npm run generate\` from src/model/wire/api_answers.ts. Do not edit. */\nexport const ANSWER_SCHEMAS = ${text} as const;\n`,
      ),
    ],
  ]);
}
