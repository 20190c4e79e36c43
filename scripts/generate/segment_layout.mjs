// Generates src/segment/layout.ts from agent/include/segment.h: the compiler computes the offset of each field.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const segmentLayoutPath = join(root, "src/segment/layout.ts");

/** The text that src/segment/layout.ts must hold. Needs a C compiler (`CC`, else `cc`). */
export function segmentLayout() {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-layout-"));
  try {
    const program = join(directory, "layout");
    const source = join(root, "agent/tools/layout.c");
    execFileSync(process.env.CC ?? "cc", ["-std=c11", "-Wall", "-Werror", "-o", program, source], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    return typescript(execFileSync(program, { encoding: "utf8" }));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** @param {string} json what agent/tools/layout.c prints @returns {string} */
function typescript(json) {
  /** @type {{structs: Record<string, {size: number, fields: Record<string, {offset: number}>}>, constants: Record<string, number | string>}} */
  const { structs, constants } = JSON.parse(json);
  const lines = [
    "// Made by `npm run generate` from agent/include/segment.h. Do not edit: change the header.",
    "// Each struct: its size in bytes and the offset of each field.",
    ...object("CONSTANTS", Object.entries(constants).map(constant)),
  ];
  for (const [name, { size, fields }] of Object.entries(structs)) {
    /** @type {Entry[]} */
    const offsets = Object.entries(fields)
      .filter(([field]) => !field.startsWith("reserved"))
      .map(([field, { offset }]) => [field, offset]);
    lines.push(...object(name.replace(/^tm_/, "").toUpperCase(), [["size", size], ...offsets]));
  }
  return `${lines.join("\n")}\n`;
}

/** @typedef {[name: string, value: number | string]} Entry */

/**
 * A number that no double can hold is given as a string of hexadecimal digits.
 * @param {Entry} entry @returns {Entry}
 */
function constant([name, value]) {
  return [name, typeof value === "string" ? `${value}n` : value];
}

/** @param {string} name @param {Entry[]} entries @returns {string[]} lines */
function object(name, entries) {
  return [
    "",
    `export const ${name} = {`,
    ...entries.map(([key, value]) => `  ${key}: ${value},`),
    "} as const;",
  ];
}
