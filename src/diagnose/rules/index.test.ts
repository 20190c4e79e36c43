import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { RULES } from "./index.js";

const folder = new URL(".", import.meta.url);

test("RULES in index.ts lists every rule of this folder once", async () => {
  const files = readdirSync(folder).filter((name) => name.endsWith(".rule.ts"));
  const unlisted: string[] = [];
  for (const file of files) {
    const exported: unknown[] = Object.values(await import(new URL(file, folder).href));
    if (!RULES.some((rule) => exported.includes(rule))) {
      unlisted.push(file);
    }
  }
  expect(unlisted, "add these files to RULES in src/diagnose/rules/index.ts").toEqual([]);
  expect(new Set(RULES.map(({ name }) => name)).size).toBe(RULES.length);
});
