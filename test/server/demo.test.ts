/** `serve --demo`: what a visitor finds in it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type {
  FleetDiffJson,
  FleetVerdictsJson,
  ServicesJson,
} from "../../src/model/documents/fleet_document.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";
import { startServer } from "./running_server.js";

afterAll(removeScratch);

test("both leaks and the regression are found in the terminal", async () => {
  const server = await startServer(join(scratch(), "demo"), { options: ["--demo"] });
  const ask = async <Document>(...words: string[]) => {
    const { stdout, stderr } = await execute([
      ...[tidemark, "fleet", ...words, "--server", server.url, "--json"],
    ]);
    expect(stderr).toBe("");
    return JSON.parse(stdout) as Document;
  };
  try {
    const { services } = await ask<ServicesJson>("services");
    expect(services).toHaveLength(20);
    expect(services.every(({ instances }) => instances > 0)).toBe(true);
    const diff = await ask<FleetDiffJson>(
      ...["diff", "checkout@2.41.0", "checkout@2.42.0", "--since", "7d"],
    );
    expect(diff.stacks[0]?.stack[0]).toMatchObject({ function: "PriceTable.price_for", line: 73 });
    await expect
      .poll(
        async () => {
          const { verdicts } = await ask<FleetVerdictsJson>("verdicts");
          return [
            ...new Set(
              verdicts
                .filter(({ kind }) => kind.endsWith("-leak"))
                .map(({ service, kind }) => `${service} ${kind}`),
            ),
          ].sort();
        },
        { timeout: 100_000, interval: 3_000 },
      )
      .toEqual(["notifications python-leak", "thumbnails native-leak"]);
  } finally {
    await server.stop();
  }
}, 300_000); // the demo has a month of 20 services to make

test("a folder with other data is refused, and keeps them", async () => {
  const folder = join(scratch(), "store");
  mkdirSync(folder);
  writeFileSync(join(folder, "meta.duckdb"), "data of somebody");
  const { status, stderr } = await execute([
    ...[tidemark, "serve", "--demo", "--listen", "127.0.0.1:0", "--store", `duckdb:${folder}`],
  ]);
  expect(status).toBe(2);
  expect(stderr).toMatch(/^tidemark: TM-E002 .* holds other data[^\n]*\n$/);
});
