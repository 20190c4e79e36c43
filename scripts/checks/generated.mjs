/**
 * Checks that generated files are up to date: generating them again would change nothing.
 * (The agent's offset tables are checked by its own tests.)
 */
import { generate } from "../generate.mjs";
import { say, verdicts } from "./stream.mjs";

export async function checkGenerated() {
  const parts = await generate({ write: false });
  for (const { path } of parts.filter(({ changed }) => changed)) {
    say(`${path} is out of date: npm run generate`);
  }
  return verdicts(parts.map(({ changed }) => !changed));
}
