/** README.md for the package registries, which have neither its pictures nor the pages that it links to. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup.mjs";

/** @returns {string} Markdown */
export function readmeWithoutLinks() {
  return withoutLinks(readFileSync(join(root, "README.md"), "utf8"));
}

/**
 * Removes pictures, and replaces links to files with their text.
 * @param {string} markdown
 */
export function withoutLinks(markdown) {
  return markdown
    .replace(/^!\[[^\]]*\]\([^)]*\)\n\n?/gm, "")
    .replace(/\[([^\]]+)\]\((?!https?:|#)[^)]*\)/g, "$1");
}
