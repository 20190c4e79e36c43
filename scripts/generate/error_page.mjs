// docs/errors.md from the doc comments of src/model/errors/errors.ts and the *_errors.ts beside it.
import { readdirSync, readFileSync } from "node:fs";

const model = new URL("../../src/model/errors/", import.meta.url);
const CLASS =
  /\/\*\*\s+(?:\* )?(TM-E\d+): ([\s\S]*?)\*\/\nexport function \w+\([\s\S]*?new TidemarkError\(\s*"(TM-E\d+)",\s*(permission \? 3 : 2|shellStatus|\d+)/g;

/** Expressions in the place of an exit code. */
const EXIT_WORDS = new Map([
  ["permission ? 3 : 2", "2, or 3 if not permitted"],
  ["shellStatus", "126, or 127 if it was not found"],
]);

/** @returns {Map<string, string>} path in the repository -> text */
export function errorPage() {
  const sources = readdirSync(model)
    .filter((name) => /(^|_)errors\.ts$/.test(name))
    .map((name) => readFileSync(new URL(name, model), "utf8"));
  const rows = sources
    .flatMap((source) => [...source.matchAll(CLASS)])
    .map(([, id = "", text = "", thrown = "", code = ""]) => {
      if (id !== thrown) {
        throw new Error(`the comment says ${id}, the code ${thrown}`);
      }
      const exit = EXIT_WORDS.get(code) ?? code;
      return `| ${id} | ${text.replace(/\s*\n \*\s*/g, " ").trim()} | ${exit} |`;
    })
    .sort();
  const text = [
    "# Errors",
    "",
    "Look up an error by its id here. An error is one line: what happened, the likely cause, and the next command.",
    "`--debug` adds the stack. `npm run generate` makes this page from src/model/errors/.",
    "",
    "| id | what happened | exit code |",
    "|---|---|---|",
    ...rows,
  ].join("\n");
  return new Map([["docs/errors.md", `${text}\n`]]);
}
