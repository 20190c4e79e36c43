/**
 * Copies everything that a server keeps while it runs, and restores it.
 *
 *     FOLDER/meta.duckdb, days/, streams/, artifacts/, alerts.json, actions.jsonl, requests.json ── backUp ──► BACKUP/data/... and, last, BACKUP/backup.json (names, sizes, SHA-256)
 *     FOLDER ◄── restore: checks every file against backup.json ───────────── BACKUP
 *
 * The database is copied before the streams. A stream only grows, so the copy of a stream holds at least the frames that
 * the copied database holds; the server writes the others to the database when it starts.
 */
import { createHash } from "node:crypto";
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { copyFile, open, truncate } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import type { Bytes, TimeMs } from "../../model/base/units.js";
import { badUsage, fileNotFound, fileUnusable, TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { makeFolder } from "../../recording/frames/make_folder.js";
import type { Store } from "../interface/store.js";
import type { StreamFiles } from "../spool/stream_files.js";

const MANIFEST = "backup.json";
const DATA = "data";
const FORM = 1;
/** A restore writes to this folder; when all files are there, it moves them into place. */
const UNFINISHED = "restoring";
const NAME =
  /^(meta\.duckdb(\.wal)?|days\/\d{4}-\d\d-\d\d(\.(10m|1h|1d))?\.duckdb(\.wal)?|streams\/[0-9a-f]{32}\.tidemark|alerts\.json|actions\.jsonl|requests\.json|artifacts\/[\w-][\w.-]*\/[\w-][\w.-]*)$/;
/** Files beside the database and the streams, each of which is replaced or appended to as a whole. */
const BESIDE = ["alerts.json", "actions.jsonl", "requests.json"];
const ARTIFACTS = "artifacts";

interface BackupFile {
  readonly name: string;
  readonly bytes: Bytes;
  readonly sha256: string;
}

interface Manifest {
  readonly backup: typeof FORM;
  readonly madeMs: TimeMs;
  readonly files: readonly BackupFile[];
}

/** The result of a backup or a restore. */
export interface BackupOutcome {
  readonly folder: string;
  readonly madeMs: TimeMs;
  readonly files: number;
  readonly bytes: Bytes;
}

/**
 * Copies what `store` and `files` keep in `source` to the folder `target`, which must be new or empty. Senders may
 * continue; the database accepts writes again once its files are copied. Throws TidemarkError, and then leaves nothing
 * in `target`.
 */
export async function backUp(
  { store, files, source }: { store: Store; files: StreamFiles; source: string },
  target: string,
): Promise<BackupOutcome> {
  const folder = resolve(target);
  if (!relative(resolve(source), folder).startsWith("..")) {
    throw badUsage(
      "a backup cannot be written into the folder of the store",
      "name another folder",
    );
  }
  refuseFull(folder, "the backup needs a new or an empty folder");
  try {
    const data = join(folder, DATA);
    makeFolder(data);
    const madeMs = Date.now();
    await store.copyTo(data);
    makeFolder(join(data, "streams"));
    for (const { stream } of await files.list()) {
      await copyStream(files, stream, join(data, "streams"));
    }
    for (const name of BESIDE) {
      await copyIfThere(join(source, name), join(data, name));
    }
    await copyArtifacts(join(source, ARTIFACTS), join(data, ARTIFACTS));
    const copied: BackupFile[] = [];
    for (const name of filesBelow(data)) {
      copied.push({ name, ...(await syncedSum(join(data, name))) });
    }
    const manifest: Manifest = { backup: FORM, madeMs, files: copied };
    writeFileSync(join(folder, MANIFEST), `${JSON.stringify(manifest, null, 1)}\n`, {
      mode: 0o600,
      flush: true,
    });
    return outcomeOf(folder, manifest);
  } catch (error) {
    empty(folder);
    throw asOurs(error, folder);
  }
}

/**
 * Copies the backup in `from` to the folder `target`, which must be new or empty. Throws TidemarkError and leaves
 * `target` empty; after a crash, {@link refuseUnfinished} refuses it.
 */
export async function restore(from: string, target: string): Promise<BackupOutcome> {
  const folder = resolve(target);
  const manifest = manifestOf(from);
  refuseFull(folder, "restore into a new or an empty folder");
  const unfinished = join(folder, UNFINISHED);
  try {
    makeFolder(unfinished);
    for (const { name, bytes, sha256 } of manifest.files) {
      const copy = join(unfinished, name);
      makeFolder(dirname(copy));
      await copyFile(join(from, DATA, name), copy);
      const found = await syncedSum(copy);
      if (found.bytes !== bytes || found.sha256 !== sha256) {
        throw fileUnusable(join(from, DATA, name), "read", "it differs from what was backed up");
      }
    }
    mkdirSync(join(unfinished, "days"), { recursive: true });
    for (const name of readdirSync(unfinished)) {
      renameSync(join(unfinished, name), join(folder, name));
    }
    rmSync(unfinished, { recursive: true });
    return outcomeOf(folder, manifest);
  } catch (error) {
    empty(folder);
    throw asOurs(error, folder);
  }
}

/** Throws TidemarkError if a restore into the folder did not finish. */
export function refuseUnfinished(folder: string): void {
  if (existsSync(join(folder, UNFINISHED))) {
    throw badUsage(
      `a restore into ${folder} did not finish`,
      "empty the folder, and restore the backup again",
    );
  }
}

/** Complete artifacts: ordinary files whose names a restore accepts. One that retention removes meanwhile is left out. */
async function copyArtifacts(from: string, to: string): Promise<void> {
  for (const id of existsSync(from) ? readdirSync(from) : []) {
    const about = join(from, id, "about.json");
    if (NAME.test(`${ARTIFACTS}/${id}/about.json`) && existsSync(about)) {
      makeFolder(join(to, id));
      for (const entry of readdirSync(join(from, id), { withFileTypes: true })) {
        const { name } = entry;
        if (entry.isFile() && NAME.test(`${ARTIFACTS}/${id}/${name}`)) {
          await copyIfThere(join(from, id, name), join(to, id, name));
        }
      }
    }
  }
}

async function copyIfThere(from: string, to: string): Promise<void> {
  try {
    await copyFile(from, to);
  } catch (error) {
    if (reasonOf(error).code !== "ENOENT") {
      throw error;
    }
  }
}

/** Copies complete, acknowledged frames. A stream that retention removes meanwhile is left out. */
async function copyStream(files: StreamFiles, stream: string, to: string): Promise<void> {
  const bytes = files.lengthOf(stream);
  const copy = join(to, `${stream}.tidemark`);
  try {
    await copyFile(files.pathOf(stream), copy);
  } catch (error) {
    if (reasonOf(error).code !== "ENOENT") {
      throw error;
    }
    return;
  }
  await truncate(copy, bytes);
}

function manifestOf(from: string): Manifest {
  const path = join(from, MANIFEST);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = reasonOf(error);
    throw code === "ENOENT"
      ? fileNotFound(path, "list of the backup; without it the backup is incomplete")
      : fileUnusable(path, "read", message);
  }
  let manifest: Partial<Manifest> | null;
  try {
    manifest = JSON.parse(text) as Partial<Manifest> | null;
  } catch {
    manifest = null;
  }
  const files: unknown = manifest?.files;
  const isWhole =
    manifest?.backup === FORM &&
    typeof manifest.madeMs === "number" &&
    Array.isArray(files) &&
    files.every((file: Partial<BackupFile> | null) => NAME.test(String(file?.name)));
  if (!isWhole) {
    throw fileUnusable(path, "read", "it is not a list of a backup, or one of a newer version");
  }
  return manifest as Manifest;
}

function refuseFull(folder: string, why: string): void {
  try {
    if (readdirSync(folder).length > 0) {
      throw badUsage(`${folder} is not empty: ${why}`, "name another folder");
    }
  } catch (error) {
    if (error instanceof TidemarkError) {
      throw error;
    }
    const { code, message } = reasonOf(error);
    if (code !== "ENOENT") {
      throw fileUnusable(folder, "write", message);
    }
  }
}

/** Names below a folder, relative to it. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(folder, name)).isFile())
    .sort();
}

/** The size and checksum of a file that is on the disk once this resolves. */
async function syncedSum(path: string): Promise<{ bytes: Bytes; sha256: string }> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  const file = await open(path, "r");
  await file.sync().finally(() => file.close());
  return { bytes, sha256: hash.digest("hex") };
}

function outcomeOf(folder: string, { madeMs, files }: Manifest): BackupOutcome {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return { folder, madeMs, files: files.length, bytes };
}

/** It was new or empty before. */
function empty(folder: string): void {
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    rmSync(join(folder, name), { recursive: true, force: true });
  }
}

function asOurs(error: unknown, folder: string): TidemarkError {
  return error instanceof TidemarkError
    ? error
    : fileUnusable(folder, "write", reasonOf(error).message);
}
