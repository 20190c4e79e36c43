// src/cli/command_list.ts from the files of src/cli/commands/ that export `about`: the program lists its commands
// without loading them.
import ts from "typescript";
import { formatted, sourcesOf } from "./source_files.mjs";

const path = "src/cli/command_list.ts";

/** @returns {Map<string, string>} path in the repository -> text */
export function commandList() {
  const entries = sourcesOf("src/cli/commands").flatMap(({ name, source }) => {
    const about = aboutOf(source);
    return about === undefined ? [] : [entry(name, about)];
  });
  const text = [
    "/** Made by `npm run generate` from the files of commands/. Do not edit. */",
    'import type { Command } from "commander";',
    'import type { CommandEntry } from "./options/about.js";',
    "",
    "/** Every command, by name. */",
    "export const COMMANDS: readonly CommandEntry<Command>[] = [",
    ...entries,
    "];",
  ];
  return new Map([[path, formatted(path, `${text.join("\n")}\n`)]]);
}

/** The object that a file exports as `about`. @param {ts.SourceFile} source */
function aboutOf(source) {
  for (const statement of source.statements) {
    const declaration = ts.isVariableStatement(statement)
      ? statement.declarationList.declarations[0]
      : undefined;
    const { name, initializer } = declaration ?? {};
    if (name?.getText() === "about" && initializer && ts.isObjectLiteralExpression(initializer)) {
      return initializer;
    }
  }
  return undefined;
}

/** @param {string} name @param {ts.ObjectLiteralExpression} about */
function entry(name, about) {
  const literal = (/** @type {string} */ key) => {
    const property = about.properties.find((found) => found.name?.getText() === key);
    if (!property || !ts.isPropertyAssignment(property)) {
      throw new Error(`src/cli/commands/${name}.ts: \`about\` has no ${key}`);
    }
    return property.initializer.getText();
  };
  return `{ name: "${name}", group: ${literal("group")}, summary: ${literal("summary")},
    load: () => import("./commands/${name}.js") },`;
}
