// docs/commands.md from the built program's own --help, so that the two cannot disagree.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("../../dist/program/main.js", import.meta.url));

/** @returns {Map<string, string>} path in the repository -> text; needs a build */
export function commandPages() {
  const overview = help();
  const names = [...overview.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name = ""]) => name);
  const parts = [
    "# Commands",
    "",
    "Look up an option of a command here. `npm run generate` makes this page from each command's `--help`.",
    "",
    "| exit code | means |",
    "|---|---|",
    "| 0 | done |",
    "| 1 | a finding (`check`, `memcheck`, `asan`, `--fail-on`, `doctor`) |",
    "| 2 | wrong usage or input |",
    "| 3 | not permitted |",
    "| 4 | the target is gone, or was refused |",
    "| 5 | a bug in Tidemark |",
    "",
    "`run` ends with the exit code of its program, and so does `check` without a finding. Text and JSON go to stdout, progress",
    "and errors to stderr; `run` and `check` write all their output to stderr. Colour is used only on terminals, and never if",
    "`NO_COLOR` is set.",
    "",
    "Sizes in options and in settings files: `K`, `KiB`, `M`, `MiB`, `G`, `GiB`, `T` and `TiB` are powers of 1024; `kB`, `MB`, `GB`",
    "and `TB` are powers of 1000. A GPU that is sold with 24 GB has 24 GiB.",
    "",
    block(overview),
    ...names.flatMap((name) => [`## tidemark ${name}`, "", block(help(name))]),
  ];
  return new Map([["docs/commands.md", `${parts.join("\n").trimEnd()}\n`]]);
}

/** @param {string[]} words @returns {string} */
function help(...words) {
  return execFileSync(process.execPath, [program, ...words, "--help"], {
    encoding: "utf8",
    env: { ...process.env, COLUMNS: "80" },
  });
}

/** @param {string} text @returns {string} */
function block(text) {
  return `\`\`\`\n${text.trimEnd()}\n\`\`\`\n`;
}
