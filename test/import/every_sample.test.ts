/** Every sample of another tool's file becomes a recording that report, diff and serve accept. */
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { DiffJson } from "../../src/model/documents/documents.js";
import { repository, tidemark } from "../run.js";
import { ask, startServer } from "../server/running_server.js";
import { diffOf, importOf, run } from "./imported.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-samples-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Formats without a figure that two recordings could be compared by; `copied`: by source line. */
const FIGURES: Readonly<Record<string, NonNullable<DiffJson["figure"]>>> = {
  "mprofile.dat": "unknown",
  "objgraph.dot": "unknown",
  "py-spy.raw": "unknown",
  "dhat-copy.out": "copied",
  "scalene.json.gz": "allocated",
  "memray.speedscope.json.gz": "peak",
  "tensorflow_memory_profile.json.gz": "peak",
};

test("import, summary, lines, report, diff and serve", async () => {
  const names = readdirSync(join(repository, "test/data/import")).filter(
    (name) => !/\.(?:md|py|sh)$/.test(name),
  );
  const recordings: string[] = [];
  for (const name of names) {
    const options = name.includes("speedscope") ? ["--value", "peak"] : [];
    copyFileSync(join(repository, "test/data/import", name), join(folder, name));
    const { recording } = await importOf(folder, name, ...options);
    const copy = `${recording}.copy`;
    copyFileSync(recording, copy);
    const { figure, totals, sites } = await diffOf(recording, copy);
    expect([name, figure ?? "live"]).toEqual([name, FIGURES[name] ?? "live"]);
    expect([totals.growthBytes, sites.length > 0]).toEqual([0, figure !== "unknown"]);
    await run([tidemark, "diff", recording, copy]);
    recordings.push(recording);
  }
  const server = await startServer(join(folder, "store"), { options: ["--load", ...recordings] });
  try {
    const streams = [...server.said().matchAll(/as stream ([0-9a-f]{32})/g)].map(([, id]) => id);
    expect(new Set(streams).size, server.said()).toBe(names.length);
    for (const id of streams) {
      const { status } = await ask(`${server.url}/api/v1/instance/report?id=${id}`);
      expect(status).toBe(200);
    }
  } finally {
    await server.stop();
  }
}, 400_000);
