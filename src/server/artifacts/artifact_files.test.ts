/** Artifacts in a folder that has something else in it, and uploads that are not complete. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ArtifactFiles, USUAL_ARTIFACT_LIMITS } from "./artifact_files.js";

let folder: string;
let limits = USUAL_ARTIFACT_LIMITS;
let artifacts: ArtifactFiles;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-artifacts-"));
  limits = USUAL_ARTIFACT_LIMITS;
  artifacts = new ArtifactFiles(folder, () => limits);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sum = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

async function put(id: string, name: string, file: Buffer, bytes = file.length) {
  const body = Readable.from([file]);
  return artifacts.take({ id, name, bytes, sha256: sum(file), offset: 0, body });
}

/** @returns its id. */
async function upload(argument = "app.py", file = Buffer.from("data")): Promise<string> {
  const about = Buffer.from(
    JSON.stringify({
      ...{ schema: "tidemark.artifact/1", service: "shop", version: "", env: "", host: "here" },
      ...{ pid: 42, command: ["python", argument], timeMs: 1, reason: "RSS", lastMoment: false },
      ...{ files: [{ name: "a.bin", capture: "gpu", pid: 1 }], problems: [] },
    }),
  );
  const id = sum(about).slice(0, 32);
  expect((await put(id, "a.bin", file)).status).toBe(200);
  expect((await put(id, "about.json", about)).answer).toMatchObject({ complete: true });
  return id;
}
const ids = () => artifacts.list().map(({ id }) => id);

it("lists and removes artifacts next to a stray file and a link that leads nowhere", async () => {
  const id = await upload();
  const other = join(folder, "artifacts", "by-hand");
  writeFileSync(join(folder, "artifacts", "notes.txt"), "mine");
  mkdirSync(other);
  symlinkSync("loop", join(other, "loop"));
  symlinkSync("about.json", join(other, "about.json"));
  expect(artifacts.tidy(Date.now())).toEqual([]);
  expect(ids()).toEqual([id]);
  expect(artifacts.bytes).toBeGreaterThan(0);
  expect(artifacts.tidy(Date.now() + limits.keepMs + 60_000)).toEqual([]);
  expect(ids()).toEqual([]);
  expect(existsSync(join(folder, "artifacts", "notes.txt"))).toBe(true);
});

it("bounds uploads that are not complete, which remove no complete artifact", async () => {
  const id = await upload();
  limits = { ...limits, mostBytes: 100_000, mostArtifactBytes: 80_000 };
  const piece = Buffer.alloc(60_000);
  expect((await put("a".repeat(32), "half", piece, 60_001)).status).toBe(200);
  const { status, answer } = await put("b".repeat(32), "half", piece, 60_001);
  expect([status, answer.error]).toEqual([503, expect.stringMatching(/not complete .*try later$/)]);
  expect((await put("c".repeat(32), "whole", Buffer.alloc(30_000))).status).toBe(200);
  artifacts.tidy(Date.now());
  expect(ids()).toEqual([id]);
});

it("limits the number of files", async () => {
  const id = "d".repeat(32);
  mkdirSync(join(folder, "artifacts", id));
  for (let at = 0; at <= 1_000; at += 1) {
    writeFileSync(join(folder, "artifacts", id, `f${at}`), "");
  }
  const { status, answer } = await put(id, "more", Buffer.from("x"));
  expect([status, answer.error]).toEqual([413, expect.stringContaining("too many files")]);
});

it("takes an artifact of a program with a long argument", async () => {
  const id = await upload("x".repeat(10_000));
  expect(ids()).toEqual([id]);
});
