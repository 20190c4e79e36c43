// src/inspect/{live,recorded}/index.ts: what the files of a folder and of its parts export, without what is marked
// `@internal`.
import ts from "typescript";
import { formatted, sourcesOf } from "./source_files.mjs";

/** Folders and the parts of theirs that count. */
const folders = new Map([
  ["src/inspect/live", ["gpu"]],
  ["src/inspect/recorded", ["gpu", "rows"]],
]);

/** @returns {Map<string, string>} path in the repository -> text */
export function folderIndexes() {
  return new Map(
    [...folders].map(([folder, parts]) => {
      const path = `${folder}/index.ts`;
      return [path, formatted(path, indexOf(folder, parts))];
    }),
  );
}

/** @param {string} folder @param {string[]} parts */
function indexOf(folder, parts) {
  const exports = ["", ...parts.map((part) => `${part}/`)].flatMap((part) =>
    sourcesOf(`${folder}/${part}`).flatMap(({ name, source }) => {
      const names = source.statements.flatMap(publicNames);
      return names.length === 0
        ? []
        : [`export { ${names.join(", ")} } from "./${part}${name}.js";`];
    }),
  );
  const head =
    "/** Made by `npm run generate` from the exports of this folder's files. Do not edit. */";
  return `${[head, ...exports].join("\n")}\n`;
}

/** @param {ts.Statement} statement @returns {string[]} */
function publicNames(statement) {
  const isExport =
    ts.canHaveModifiers(statement) &&
    ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
  const isInternal = ts.getJSDocTags(statement).some(({ tagName }) => tagName.text === "internal");
  if (!isExport || isInternal) {
    return [];
  }
  if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) {
    return [`type ${statement.name.text}`];
  }
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  }
  if (ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)) {
    return [statement.name?.text ?? ""];
  }
  throw new Error(
    `${statement.getSourceFile().fileName} exports a kind of statement that is not handled`,
  );
}
