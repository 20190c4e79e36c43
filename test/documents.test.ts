/** The command line as programs use it: JSON documents that follow their schemas, and exports. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DiffJson } from "../src/model/documents/documents.js";
import { cli, folder, python, recordApp, recording, validate } from "./recorded_app.js";
import { execute, removeScratch, repository } from "./run.js";

beforeAll(recordApp);
afterAll(removeScratch);

describe("JSON", () => {
  test("of run and summary", async () => {
    const fromRun = validate(readFileSync(join(folder, "run.json"), "utf8"), "summary");
    const { stdout, stderr } = await cli(["summary", recording, "--json"]);
    expect(stderr).toBe("");
    const summary = validate(stdout, "summary");
    expect(summary).toEqual(fromRun);
    const diagnosis = validate((await cli(["diagnose", recording, "--json"])).stdout, "diagnosis");
    const [suspect] = diagnosis.suspects as object[];
    expect(summary.verdict).toEqual({
      ...(diagnosis.verdict as object),
      ...(suspect && { suspect }),
    });
    const atPeak = await cli(["summary", recording, "--at", "peak", "--json"]);
    expect(validate(atPeak.stdout, "summary").verdict).toBe(null);
    const sites = summary.sites as { liveBytes: number; stack: { function: string }[] }[];
    expect(sites.length).toBeGreaterThan(0);
    expect(sites.map((site) => site.liveBytes)).toEqual(
      sites.map((site) => site.liveBytes).sort((a, b) => b - a),
    );
  });

  test("lists apply --top, --min and --filter", async () => {
    const sitesOf = async (...words: string[]) =>
      JSON.parse((await cli(["summary", recording, "--at", "peak", "--json", ...words])).stdout)
        .sites as {
        liveBytes: number;
        stack: { function: string }[];
      }[];
    expect(await sitesOf("--top", "1")).toHaveLength(1);
    const large = await sitesOf("--min", "10MiB");
    expect(large.length).toBeGreaterThan(0);
    expect(large.every((site) => site.liveBytes >= 10 * 2 ** 20)).toBe(true);
    const kept = await sitesOf("--filter", "KEEP");
    expect(kept.length).toBeGreaterThan(0);
    expect(kept.every((site) => site.stack.some((frame) => frame.function === "keep"))).toBe(true);
  });

  test("of diff: what grew between two moments of one recording", async () => {
    const { stdout } = await cli(["diff", "app.tidemark@end", "app.tidemark@peak", "--json"]);
    const document = validate(stdout, "diff");
    const [first] = document.sites as DiffJson["sites"];
    // At the peak it is unknown which of the samples of the end had been taken, so both sides' errors count.
    expect(first?.standardErrorBytes).toBeGreaterThan(0);
    expect(first?.stack.map((frame) => frame.function)).toContain("keep");
    expect(first?.growthBytes).toBeGreaterThan(8 * 2 ** 20);
    const noise = (document.sites as DiffJson["sites"]).map(({ isNoise }) => isNoise);
    expect(noise[0]).toBe(false);
    expect(noise).toEqual([...noise].sort()); // last
    const text = await cli(["diff", "app.tidemark@end", "app.tidemark@peak"]);
    expect(text.stdout).toMatch(/\+\d.* keep app\.py:4/);
  });

  test("of diff: a gate for growth", async () => {
    const gate = (size: string) =>
      cli(["diff", "app.tidemark@end", "app.tidemark@peak", "--fail-on", `growth=${size}`]);
    const over = await gate("8MiB");
    expect(over.status).toBe(1);
    expect(over.stderr).toMatch(/over --fail-on growth=8.00 MiB: .*keep app\.py:4/);
    const under = await gate("1GiB");
    expect([under.status, under.stderr]).toEqual([0, ""]);
    expect((await gate("much")).stderr).toMatch(/a size such as/);
  });

  test("of lines, all and of one file", async () => {
    const all = validate(
      (await cli(["lines", recording, "--at", "peak", "--json"])).stdout,
      "lines",
    );
    expect((all.lines as { line: number }[]).length).toBeGreaterThan(0);
    const { stdout } = await cli(["lines", recording, "app.py", "--at", "peak", "--json"]);
    const rows = validate(stdout, "lines").lines as { line: number; file: string }[];
    expect(rows.map((row) => row.line)).toContain(4);
    expect(rows.every((row) => basename(row.file) === "app.py")).toBe(true);
    const text = (await cli(["lines", recording, "app.py", "--at", "peak"])).stdout;
    expect(text).toContain("kept.append(bytearray(");
  });

  test("of ps: the process, its interpreter, and its growth since the last call", async () => {
    const version = (
      await execute([python, "-c", "import platform; print(platform.python_version())"])
    ).stdout.trim();
    const grow =
      "import sys; print('up', flush=True); sys.stdin.readline(); kept = b'x' * (64 << 20); print('grown', flush=True); sys.stdin.readline()";
    const snapshot = async (cache: string) => {
      const { stdout } = await cli(["ps", "--json"], { env: { XDG_CACHE_HOME: cache } });
      return validate(stdout, "ps").processes as Record<string, number | string | string[]>[];
    };
    const cache = join(folder, "cache");
    const child = spawn(python, ["-c", grow], { stdio: ["pipe", "pipe", "inherit"] });
    try {
      await once(child.stdout, "data");
      const before = (await snapshot(cache)).find((row) => row.pid === child.pid);
      expect(before).toMatchObject({
        python: version,
        parentPid: process.pid,
        growthBytes: 0,
        threads: 1,
      });
      child.stdin.write("\n");
      await once(child.stdout, "data");
      const after = (await snapshot(cache)).find((row) => row.pid === child.pid);
      expect(after?.growthBytes).toBeGreaterThan(60 * 2 ** 20);
      expect(after?.ussBytes).toBeGreaterThan(60 * 2 ** 20);
      expect(after?.minRssBytes).toBe(before?.rssBytes);
      expect(after?.growthBytesPerHour).toBeUndefined(); // two profiles within a minute are too few for a rate
      expect(after?.attach).toMatchObject({ ok: true });
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  });

  test("of report and export", async () => {
    const page = validate((await cli(["report", "app.tidemark", "--json"])).stdout, "written");
    expect(page.files).toEqual([
      { file: "app.html", bytes: statSync(join(folder, "app.html")).size },
    ]);
    const formats = "pprof,folded,speedscope,csv,duckdb,parquet";
    const { stdout } = await cli([
      "export",
      "app.tidemark",
      "--at",
      "peak",
      "--format",
      formats,
      "--json",
    ]);
    const files = validate(stdout, "written").files as { file: string; bytes: number }[];
    expect(
      files.every(({ file, bytes }) => statSync(join(folder, file)).size === bytes && bytes > 0),
    ).toBe(true);
    expect(gunzipSync(readFileSync(join(folder, "app.pb.gz"))).includes("keep")).toBe(true);
    expect(readFileSync(join(folder, "app.folded.txt"), "utf8")).toMatch(/keep.* \d+$/m);
    JSON.parse(readFileSync(join(folder, "app.speedscope.json"), "utf8"));
    expect(existsSync(join(folder, "app.parquet/samples.parquet"))).toBe(true);
    expect(readdirSync(folder).filter((name) => name.endsWith(".part"))).toEqual([]);
    const piped = await cli([
      "export",
      "app.tidemark",
      "--at",
      "peak",
      "--format",
      "folded",
      "-o",
      "-",
    ]);
    expect(piped.stdout).toBe(readFileSync(join(folder, "app.folded.txt"), "utf8"));
  });
});

test("the example of docs/recording.md reads a recording, and matches the page", async () => {
  const example = join(repository, "examples/read_recording.py");
  const { stdout, stderr } = await execute([python, example, recording]);
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^TIDEMARK version \d+\nmeta 1, .*\bsamples \d+.*, end 1\n$/);
  const [, code = ""] = readFileSync(example, "utf8").split('"""\n\n');
  expect(readFileSync(join(repository, "docs/recording.md"), "utf8")).toContain(code);
});

test("docs/json/README.md lists every schema", () => {
  const page = readFileSync(join(repository, "docs/json/README.md"), "utf8");
  const schemas = readdirSync(join(repository, "docs/json")).filter((name) =>
    name.endsWith(".json"),
  );
  expect(schemas.filter((name) => !page.includes(`](${name})`))).toEqual([]);
});
