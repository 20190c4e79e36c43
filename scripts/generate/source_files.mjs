// Reads TypeScript sources for the generators, and formats their output.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * The sources of one folder without tests, sorted by name.
 * @param {string} folder from the root
 * @returns {{name: string, source: ts.SourceFile}[]} `name` without ".ts"
 */
export function sourcesOf(folder) {
  return readdirSync(join(root, folder))
    .filter((file) => /^[a-z0-9_]+\.ts$/.test(file) && file !== "index.ts")
    .sort()
    .map((file) => ({
      name: file.slice(0, -3),
      source: ts.createSourceFile(
        file,
        readFileSync(join(root, folder, file), "utf8"),
        ts.ScriptTarget.Latest,
        true,
      ),
    }));
}

/** Formats text as `npm run format` does. @param {string} path from the root @param {string} text @returns {string} */
export function formatted(path, text) {
  const biome = join(root, "node_modules/.bin/biome");
  const args = ["check", "--write", `--stdin-file-path=${path}`];
  return execFileSync(biome, args, { cwd: root, input: text, encoding: "utf8" });
}
