import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { PROFILE_EXPORTERS, type ProfileExporter } from "./index.js";

const folder = new URL("export/", import.meta.url);

test("PROFILE_EXPORTERS lists every exporter of export/", async () => {
  const files = readdirSync(folder).filter((name) => !name.endsWith(".test.ts"));
  const unlisted: string[] = [];
  for (const file of files) {
    const exported: unknown[] = Object.values(await import(new URL(file, folder).href));
    const exporters = exported.filter(isExporter);
    if (exporters.some((exporter) => !PROFILE_EXPORTERS.includes(exporter))) {
      unlisted.push(file);
    }
  }
  expect(unlisted, "add these files to PROFILE_EXPORTERS in src/formats/index.ts").toEqual([]);
});

function isExporter(value: unknown): value is ProfileExporter {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "profile";
}
