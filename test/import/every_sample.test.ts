/** Every sample of another tool's file becomes a recording that each command on recordings accepts. */
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, expect, test } from "vitest";
import type { DiffJson, LinesJson } from "../../src/model/documents/documents.js";
import type { SummaryJson } from "../../src/model/documents/summary_document.js";
import { commandHere } from "../command_here.js";
import { repository, tidemark } from "../run.js";
import { ask, startServer } from "../server/running_server.js";
import { diffOf, jsonOf, run, runHere } from "./imported.js";

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

/** A key that groups the sites of the sample; one without live bytes, one of leaks, one of tensors. */
const KEYS: Readonly<Record<string, string>> = {
  "tensorflow_memory_profile.json.gz": "region",
  "memcheck.xml": "leak",
  "torch_trace.json.gz": "device",
};

const allocatedIn = ({ sites }: SummaryJson) =>
  Math.round(sites.reduce((sum, { allocatedBytes }) => sum + allocatedBytes, 0));

/** A figure that the source lacks is an empty cell, or refused in one line, and is never 0. */
async function checkExports(recording: string, { imported, sites }: SummaryJson): Promise<void> {
  const unknown = imported?.unknown ?? [];
  for (const [figure, column] of [
    ["live", "liveBytes"],
    ["peak", "peakBytes"],
    ["allocated", "allocatedBytes"],
  ] as const) {
    const args = ["export", recording, "--format", "folded", "--value", column, "-o", "-"];
    const { status, stderr } = await commandHere(...args);
    const refused = unknown.includes(figure);
    expect([recording, figure, status]).toEqual([recording, figure, refused ? 2 : 0]);
    expect(stderr.trim().split("\n").length).toBe(1);
    expect(/TM-E014.* contains no /.test(stderr)).toBe(refused);
  }
  if (sites.length > 0) {
    const [head = "", first = ""] = (
      await runHere("export", recording, "--format", "csv", "-o", "-")
    ).split("\r\n");
    // The figures follow a quoted stack.
    const cells = first.split(",").slice(-11);
    const figures = head.split(",").slice(-11);
    const isEmpty = (column: string) => cells[figures.indexOf(column)] === "";
    expect([isEmpty("live_bytes"), isEmpty("peak_bytes"), isEmpty("allocated_bytes")]).toEqual(
      ["live", "peak", "allocated"].map((figure) => unknown.some((each) => each === figure)),
    );
  }
}

/** A selection or a grouping by what the source lacks is refused in one line that names it. */
async function checkSelections(recording: string, { imported, sites }: SummaryJson): Promise<void> {
  const hasDomains = imported?.unknown.includes("python") === false;
  const reason = /does not contain which memory|contains no memory by stack/;
  for (const args of [
    ["summary", recording, "--where", "domain=native"],
    ["lines", recording, "--where", "domain=python"],
    ["diff", recording, `${recording}.copy`, "--where", "domain=native"],
    ["summary", recording, "--by", "domain"],
    ["lines", recording, "--by", "domain"],
  ]) {
    const { status, stdout, stderr } = await commandHere(...args);
    const isRefused = status === 2 && stdout === "" && stderr.trim().split("\n").length === 1;
    if (!hasDomains || sites.length === 0) {
      expect([args, isRefused, reason.test(stderr)]).toEqual([args, true, true]);
    } else {
      // A domain may have no row.
      expect([args, status === 0 || /nothing in .* has domain=/.test(stderr)]).toEqual([
        args,
        true,
      ]);
    }
  }
  const { status, stderr } = await commandHere("summary", recording, "--by", "threads");
  const guess = sites.length > 0 ? /did you mean thread\?/ : /did you mean thread\?|by stack/;
  expect([status, guess.test(stderr), /agent/.test(stderr)]).toEqual([2, true, false]);
}

/** Columns of the exported database that are NULL in every row: what the source does not know, and nothing else. */
async function checkDatabase(recording: string, { imported, sites }: SummaryJson): Promise<void> {
  const file = `${recording}.duckdb`;
  await runHere("export", recording, "--format", "duckdb", "-o", file, "--force");
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  try {
    const columns = ["live_bytes", "peak_bytes", "allocated_bytes", "live_objects", "domain"];
    const counts = columns.map((column) => `count(${column})`).join(", ");
    const reader = await connection.runAndReadAll(`SELECT count(*), ${counts} FROM samples`);
    const [[rows = 0, ...known] = []] = reader.getRowsJson().map((row) => row.map(Number));
    const isUnknown = (...figures: string[]) =>
      imported?.unknown.some((figure) => figures.includes(figure)) === true;
    expect([recording, rows > 0]).toEqual([recording, sites.length > 0]);
    expect([recording, ...known.map((count) => count === rows)]).toEqual([
      recording,
      ...[["live"], ["peak"], ["allocated"], ["live", "objects"], ["python"]].map(
        (figures) => rows === 0 || !isUnknown(...figures),
      ),
    ]);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

test("import, summary, lines, report, diff and serve", async () => {
  const data = join(repository, "test/data/import");
  const names = readdirSync(data).filter((name) => !/\.(?:md|py|sh)$/.test(name));
  const paths = names.map((name) => join(folder, name));
  for (const name of names) {
    copyFileSync(join(data, name), join(folder, name));
  }
  const isStack = (path: string) => path.includes("speedscope");
  await run([tidemark, "import", ...paths.filter((path) => !isStack(path))]);
  await run([tidemark, "import", "--value", "peak", ...paths.filter(isStack)]);
  for (const [index, name] of names.entries()) {
    const recording = `${paths[index]}.tidemark`;
    const copy = `${recording}.copy`;
    copyFileSync(recording, copy);
    const summary = await jsonOf<SummaryJson>("summary", recording);
    const { lines } = await jsonOf<LinesJson>("lines", recording);
    expect(summary.imported?.file).toBe(name);
    if (summary.imported?.unknown.includes("peak")) {
      const { status, stderr } = await commandHere("summary", recording, "--at", "peak");
      expect([name, status, /contains no peak/.test(stderr)]).toEqual([name, 2, true]);
    } else {
      // A recording does not know how much had been allocated by the peak, so the summary at the peak shows the total.
      const atPeak = await jsonOf<SummaryJson>("summary", recording, "--at", "peak");
      expect([name, allocatedIn(atPeak)]).toEqual([name, allocatedIn(summary)]);
    }
    const { figure, totals, sites } = await diffOf(recording, copy);
    expect([name, figure ?? "live"]).toEqual([name, FIGURES[name] ?? "live"]);
    expect([totals.growthBytes, sites.length > 0]).toEqual([0, figure !== "unknown"]);
    expect(await runHere("summary", recording)).toContain("Imported from ");
    expect(await runHere("lines", recording)).toContain(lines.length > 0 ? "PYTHON" : "no memory");
    expect(await runHere("diff", recording, copy)).toMatch(/^A .*\nB /);
    await runHere("report", recording);
    const { status, stdout: verdict, stderr } = await commandHere("diagnose", recording);
    // No agent was ever in an imported program.
    expect([name, /agent/i.test(verdict + stderr + (await runHere("summary", recording)))]).toEqual(
      [name, false],
    );
    const hasRss = summary.imported?.unknown.includes("rss") === false;
    expect([name, status, /TM-E014.*no verdict/.test(stderr)]).toEqual([
      name,
      hasRss ? 0 : 2,
      !hasRss,
    ]);
    await checkExports(recording, summary);
    await checkDatabase(recording, summary);
    await checkSelections(recording, summary);
    if (name === "memray-13.bin") {
      expect(await runHere("diff", recording, copy)).toContain("no difference");
      const page = await commandHere("report", recording, "-o", "-");
      expect([page.status, page.stderr]).toEqual([2, expect.stringMatching(/TM-E002.*stdout/)]);
    }
    const key = KEYS[name];
    if (key !== undefined) {
      const { groups = [] } = await diffOf(recording, copy, "--by", key);
      expect(groups.length, name).toBeGreaterThan(0);
      const shown = groups.reduce((sum, { liveBytesA }) => sum + liveBytesA, 0);
      expect(shown, name).toBeCloseTo(totals.liveBytesA, 3);
      expect(groups.map(({ growthBytes }) => growthBytes)).toEqual(groups.map(() => 0));
      const text = await runHere("summary", recording, "--by", key);
      // Unknown live bytes are not shown as 0.
      expect(text, name).toMatch(figure === "peak" ? /^ +unknown .*MiB/m : /^ +\d.* [KM]iB/m);
    }
  }
  // Allocators that one side does not know, and names of functions, do not make a difference.
  const recorded = (name: string) => join(folder, `${name}.tidemark`);
  const python = await diffOf(recorded("memray-13.bin"), recorded("memray-python.bin"));
  const largest = Math.max(...python.sites.map(({ growthBytes }) => Math.abs(growthBytes)));
  expect(largest).toBeLessThan(0.1 * python.totals.liveBytesA);
  const named = await runHere("diff", recorded("tracemalloc.pickle.gz"), recorded("memray-13.bin"));
  expect(named).not.toMatch(/\(no symbol\)| (?:Python|native) {2}/);
  const options = ["--load", ...paths.map((path) => `${path}.tidemark`)];
  const server = await startServer(join(folder, "store"), { options });
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
