/** Style and types of everything written in TypeScript and JavaScript. */
import { join } from "node:path";
import { root } from "../setup.mjs";
import { oneCheck, say, sum } from "./stream.mjs";

const binary = (/** @type {string} */ path) => join(root, "node_modules", path);

export async function checkStyle() {
  const count = await oneCheck(process.execPath, [
    ...[binary("@biomejs/biome/bin/biome"), "check", "--error-on-warnings", "."],
  ]);
  if (count.failed > 0) say("mend what can be mended: npm run format");
  return count;
}

/** src/ is checked by the build; here are the page, the tests, and the scripts. */
export async function checkTypes() {
  const counts = [];
  for (const project of ["web/tsconfig.json", "test/tsconfig.json"]) {
    counts.push(await oneCheck(process.execPath, [binary("typescript/bin/tsc"), "-p", project]));
  }
  return sum(counts);
}
