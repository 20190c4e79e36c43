/** `npm run bench -- NAME [OPTIONS]`: runs bench/NAME.mjs on a built tree. Results go to docs/benchmarks.md. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { root } from "./setup.mjs";

/** Files of bench/ that are parts of benchmarks, not benchmarks. */
const parts = new Set([
  "environment",
  "heap_look",
  "machine",
  "results",
  "soak_cycles",
  "statistics",
  "tools",
]);
const folder = join(root, "bench");
const names = readdirSync(folder)
  .filter((file) => file.endsWith(".mjs"))
  .map((file) => file.slice(0, -4))
  .filter((name) => !parts.has(name));
const [name] = process.argv.splice(2, 1);
if (name === undefined || !names.includes(name)) {
  console.error(`usage: npm run bench -- NAME [OPTIONS]; NAME is one of ${names.join(", ")}`);
  process.exit(2);
}
await build();
if (!existsSync(join(root, "dist/native/libtidemark.so")))
  throw new Error("the build left no agent");
await import(pathToFileURL(join(folder, `${name}.mjs`)).href);
