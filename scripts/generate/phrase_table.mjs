// The list of phrases to avoid in CONTRIBUTING.md, from scripts/checks/phrases.mjs.
import { readFileSync } from "node:fs";
import { PHRASES } from "../checks/phrases.mjs";

const page = new URL("../../CONTRIBUTING.md", import.meta.url);
const TABLE = /<!-- phrases -->\n.*?<!-- end phrases -->/s;

/** @returns {Map<string, string>} path in the repository -> text */
export function phraseTable() {
  const rows = PHRASES.map(({ phrase, instead }) => `| ${plain(phrase)} | ${instead} |`);
  const table = [
    "<!-- phrases -->",
    "| not | but |",
    "|---|---|",
    ...rows,
    "<!-- end phrases -->",
  ].join("\n");
  const text = readFileSync(page, "utf8");
  if (!TABLE.test(text)) {
    throw new Error("CONTRIBUTING.md has no place for the list of phrases: <!-- phrases -->");
  }
  return new Map([["CONTRIBUTING.md", text.replace(TABLE, () => table)]]);
}

/** Separates alternatives by commas, because a bar would end the cell. @param {string} phrase */
function plain(phrase) {
  return phrase
    .replace(/\((\w+)\|\) ?/g, "($1) ")
    .replace(/\(([^()]*\|[^()]*)\)/g, (_, list) => list.replaceAll("|", "/"));
}
