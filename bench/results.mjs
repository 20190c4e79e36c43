import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const docs = join(fileURLToPath(new URL("..", import.meta.url)), "docs");

/**
 * Replaces one benchmark's part of a page in docs/, between its two markers.
 * @param {string} name as given to `npm run bench -- NAME`
 * @param {string} markdown
 * @param {string} file the page
 */
export function writeResults(name, markdown, file = "benchmarks.md") {
  const page = join(docs, file);
  const begin = `<!-- bench ${name} -->`;
  const end = `<!-- end ${name} -->`;
  const text = existsSync(page) ? readFileSync(page, "utf8") : "# Benchmarks\n";
  const part = `${begin}\n${markdown.trim()}\n${end}`;
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  const next =
    from >= 0 && to > from
      ? text.slice(0, from) + part + text.slice(to + end.length)
      : `${text.trimEnd()}\n\n${part}\n`;
  writeFileSync(page, next);
}

/** @param {string[]} head @param {string[][]} rows */
export function markdownTable(head, rows) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
