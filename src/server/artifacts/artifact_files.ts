/**
 * Artifacts that collectors upload, in the data folder, in the form that a collector keeps them:
 *
 *     FOLDER/artifacts/ID/about.json         written last: without it the artifact is incomplete, and is not listed
 *                        heap-42.json        a complete file whose SHA-256 is right, and .heap-42.json.sha256
 *                        .heap-42.json.part  what was received of a file
 *
 * Folders with an about.json that somebody copied there are listed, too.
 */
import { createHash } from "node:crypto";
import {
  createReadStream,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { type FileHandle, open, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import type { ArtifactJson, StoredArtifactJson } from "../../model/documents/artifact_document.js";
import { reasonOf } from "../../model/errors/reason.js";
import {
  ARTIFACT_ABOUT,
  ARTIFACT_FILE_NAME,
  type ArtifactAnswer,
  MOST_PIECE_BYTES,
} from "../../model/wire/artifacts.js";
import { makeFolder } from "../../recording/frames/make_folder.js";
import { aboutArtifact, MOST_LISTED_FILES } from "./about_artifact.js";

export interface ArtifactLimits {
  /** Artifacts, their age since they were received, their size, and the size of one of them. */
  readonly count: number;
  readonly keepMs: Millis;
  readonly mostBytes: Bytes;
  readonly mostArtifactBytes: Bytes;
}

export const USUAL_ARTIFACT_LIMITS: ArtifactLimits = {
  count: 1_000,
  keepMs: 14 * 86_400_000,
  mostBytes: 10 * 2 ** 30,
  mostArtifactBytes: 2 ** 30,
};

/** A file of an artifact, or a part of it. */
export interface ArtifactPiece {
  readonly id: string;
  readonly name: string;
  /** Of the whole file. */
  readonly sha256: string;
  readonly bytes: Bytes;
  /** Where the body begins in the file. */
  readonly offset: Bytes;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface ArtifactOutcome {
  readonly status: 200 | 400 | 409 | 413 | 503;
  readonly answer: ArtifactAnswer;
}

/** An artifact that is not completed is removed after this time. */
const LONGEST_INCOMPLETE_MS: Millis = 86_400_000;
const OPENS = /^recording$/;
/** The files that an about.json may list, and itself. */
const MOST_FILES = MOST_LISTED_FILES + 1;
/** What was received of a file, and the sum of a complete one. */
const OWN_FILE = /^\.(.*)\.(part|sha256)$/;

export class ArtifactFiles {
  readonly #folder: string;
  readonly #limits: () => ArtifactLimits;
  readonly #turns = new Map<string, Promise<unknown>>();

  /** Throws TidemarkError if the folder cannot be created. */
  constructor(dataFolder: string, limits: () => ArtifactLimits) {
    this.#folder = join(dataFolder, "artifacts");
    this.#limits = limits;
    makeFolder(this.#folder);
  }

  get limits(): ArtifactLimits {
    return this.#limits();
  }

  /** Of all artifacts, complete or not. */
  get bytes(): Bytes {
    return this.#ids().reduce((sum, id) => sum + this.#bytesOf(id), 0);
  }

  /** Takes a piece of a file. One request at a time for each artifact. */
  take(piece: ArtifactPiece): Promise<ArtifactOutcome> {
    const before = this.#turns.get(piece.id) ?? Promise.resolve();
    const result = before.catch(() => {}).then(() => this.#take(piece));
    const turn = result
      .catch(() => {})
      .finally(() => {
        if (this.#turns.get(piece.id) === turn) {
          this.#turns.delete(piece.id);
        }
      });
    this.#turns.set(piece.id, turn);
    return result;
  }

  async #take(piece: ArtifactPiece): Promise<ArtifactOutcome> {
    const { id, name, bytes, sha256 } = piece;
    const known = this.#sumOf(id, name);
    if (known !== null) {
      await drain(piece.body);
      return known === sha256
        ? done(bytes)
        : refused(409, "another file of this name is part of the artifact");
    }
    const excess = this.#excessOf(piece);
    if (excess !== null) {
      await drain(piece.body);
      return excess;
    }
    try {
      makeFolder(this.#pathOf(id));
      return await this.#append(piece);
    } catch (error) {
      return refused(503, `the server cannot store it: ${reasonOf(error).message}`);
    }
  }

  /** Why there is no room for a file; null: there is. */
  #excessOf({ id, name, bytes }: ArtifactPiece): ArtifactOutcome | null {
    const { mostArtifactBytes, mostBytes } = this.#limits();
    const most = Math.min(mostArtifactBytes, mostBytes);
    const whole = this.#bytesOf(id) - this.#received(id, name) + bytes;
    if (whole > most) {
      const limit = `${Math.floor(most / 2 ** 20)} MiB`;
      return refused(413, `the artifact is too large: the limit artifact-bytes is ${limit}`);
    }
    if (this.#namesIn(id, name).size > MOST_FILES) {
      return refused(413, `the artifact has too many files: the limit is ${MOST_FILES}`);
    }
    const others = this.#ids()
      .filter((other) => other !== id && !this.#has(other, ARTIFACT_ABOUT))
      .reduce((sum, other) => sum + this.#bytesOf(other), 0);
    return others + whole > mostBytes
      ? refused(503, "uploads that are not complete use all the space for artifacts; try later")
      : null;
  }

  async #append(piece: ArtifactPiece): Promise<ArtifactOutcome> {
    const { id, name, sha256, bytes, offset, body } = piece;
    const part = this.#pathOf(id, `.${name}.part`);
    const before = this.#received(id, name);
    const file = await open(part, "a", 0o600);
    let received: Bytes;
    try {
      const outcome = await appended(file, body, {
        most: offset === before ? Math.min(MOST_PIECE_BYTES, bytes - before) : 0,
      });
      received = outcome.bytes;
      if (offset !== before && received + outcome.left > 0) {
        return {
          status: 409,
          answer: { error: `${before} bytes of this file are stored`, nextOffset: before },
        };
      }
      if (outcome.left > 0) {
        await file.truncate(before);
        return before + received + outcome.left > bytes
          ? refused(400, `the body goes beyond the ${bytes} bytes of the file`)
          : refused(
              413,
              `the body is too large: the limit piece-bytes is ${MOST_PIECE_BYTES >> 20} MiB`,
            );
      }
      await file.sync();
    } catch (error) {
      await truncate(part, before).catch(() => {});
      throw error;
    } finally {
      await file.close();
    }
    const length = before + received;
    if (length < bytes) {
      return { status: 200, answer: { nextOffset: length, complete: false } };
    }
    if ((await sumOf(part)) !== sha256 || length > bytes) {
      await rm(part, { force: true });
      return refused(400, "the SHA-256 of the file is another one than the request names");
    }
    return name === ARTIFACT_ABOUT ? this.#complete(id, part, sha256) : this.#keep(piece, part);
  }

  async #keep({ id, name, sha256, bytes }: ArtifactPiece, part: string): Promise<ArtifactOutcome> {
    await writeFile(this.#pathOf(id, `.${name}.sha256`), sha256, { mode: 0o600, flush: true });
    await rename(part, this.#pathOf(id, name));
    await syncFolder(this.#pathOf(id));
    this.tidy(Date.now(), id);
    return done(bytes);
  }

  async #complete(id: string, part: string, sha256: string): Promise<ArtifactOutcome> {
    const about = aboutArtifact(await readFile(part, "utf8"));
    if (!sha256.startsWith(id) || typeof about === "string") {
      await rm(part, { force: true });
      const why = typeof about === "string" ? about : "its SHA-256 does not begin with the id";
      return refused(400, `${ARTIFACT_ABOUT} is refused: ${why}`);
    }
    const missing = about.files.map(({ name }) => name).filter((name) => !this.#has(id, name));
    if (missing.length > 0) {
      await rm(part, { force: true });
      return {
        status: 409,
        answer: { error: `files are missing: ${missing.slice(0, 5).join(", ")}`, missing },
      };
    }
    const { size } = statSync(part);
    const piece = { id, name: ARTIFACT_ABOUT, sha256, bytes: size, offset: 0, body: nothing() };
    return this.#keep(piece, part);
  }

  /** The newest first. */
  list(): StoredArtifactJson[] {
    return this.#ids()
      .flatMap((id) => {
        const about = this.#aboutOf(id);
        return about === null ? [] : [this.#stored(id, about)];
      })
      .sort((a, b) => b.timeMs - a.timeMs);
  }

  /** The path of a file of a complete artifact; null: there is none. */
  fileOf(id: string, name: string): { readonly path: string; readonly bytes: Bytes } | null {
    const about = ARTIFACT_FILE_NAME.test(id) ? this.#aboutOf(id) : null;
    const isPart =
      name === ARTIFACT_ABOUT || (about?.files.some((file) => file.name === name) ?? false);
    if (about === null || !isPart || !this.#has(id, name)) {
      return null;
    }
    const path = this.#pathOf(id, name);
    return { path, bytes: statSync(path).size };
  }

  /**
   * Removes the oldest artifacts beyond the limits, which those that are not complete have for themselves, and those that
   * were never completed. `kept`: stays.
   * @returns why others could not be removed.
   */
  tidy(nowMs: TimeMs, kept = ""): string[] {
    const failed: string[] = [];
    const { count, keepMs, mostBytes } = this.#limits();
    const all = this.#ids()
      .map((id) => ({ id, bytes: this.#bytesOf(id), changedMs: this.#changedMs(id) }))
      .sort((a, b) => Number(b.id === kept) - Number(a.id === kept) || b.changedMs - a.changedMs);
    for (const isComplete of [true, false]) {
      const longestMs = isComplete ? keepMs : Math.min(keepMs, LONGEST_INCOMPLETE_MS);
      const newestFirst = all.filter(({ id }) => this.#has(id, ARTIFACT_ABOUT) === isComplete);
      let bytes = 0;
      for (const [at, artifact] of newestFirst.entries()) {
        bytes += artifact.bytes;
        const isOld = nowMs - artifact.changedMs > longestMs;
        if (artifact.id !== kept && (at >= count || bytes > mostBytes || isOld)) {
          try {
            rmSync(this.#pathOf(artifact.id), { recursive: true, force: true });
          } catch (error) {
            failed.push(reasonOf(error).message);
          }
        }
      }
    }
    return failed;
  }

  #stored(id: string, about: ArtifactJson): StoredArtifactJson {
    const { service, version, env, host, pid, command, timeMs, reason, lastMoment } = about;
    const files = about.files
      .filter(({ name }) => this.#has(id, name))
      .map((file) => ({
        ...file,
        bytes: this.#sizeOf(id, file.name),
        opens: OPENS.test(file.capture),
      }));
    return {
      ...{ id, service, version, env, host, pid, command, timeMs, reason, lastMoment, files },
      receivedMs: this.#changedMs(id),
      bytes: files.reduce((sum, file) => sum + file.bytes, 0),
      problems: about.problems,
    };
  }

  /** Names of folders; others are not artifacts. */
  #ids(): string[] {
    return readdirSync(this.#folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && ARTIFACT_FILE_NAME.test(entry.name))
      .map(({ name }) => name);
  }

  #aboutOf(id: string): ArtifactJson | null {
    try {
      const about = aboutArtifact(readFileSync(this.#pathOf(id, ARTIFACT_ABOUT), "utf8"));
      return typeof about === "string" ? null : about;
    } catch {
      return null;
    }
  }

  /** The SHA-256 of a complete file; null: it is not complete. */
  #sumOf(id: string, name: string): string | null {
    if (!this.#has(id, name)) {
      return null;
    }
    const sum = this.#pathOf(id, `.${name}.sha256`);
    // Somebody copied the file there.
    return existsSync(sum) ? readFileSync(sum, "utf8").trim() : "";
  }

  #has(id: string, name: string): boolean {
    return ARTIFACT_FILE_NAME.test(name) && existsSync(this.#pathOf(id, name));
  }

  #received(id: string, name: string): Bytes {
    return this.#sizeOf(id, `.${name}.part`);
  }

  #sizeOf(id: string, name: string): Bytes {
    return lstatSync(this.#pathOf(id, name), { throwIfNoEntry: false })?.size ?? 0;
  }

  #bytesOf(id: string): Bytes {
    return this.#entries(id).reduce((sum, name) => sum + this.#sizeOf(id, name), 0);
  }

  /** The names of an artifact's files, complete or not, and of one more. */
  #namesIn(id: string, more: string): Set<string> {
    const names = this.#entries(id).map((name) => name.replace(OWN_FILE, "$1"));
    return new Set([...names, more]);
  }

  /** None if the folder cannot be read. */
  #entries(id: string): string[] {
    try {
      return readdirSync(this.#pathOf(id));
    } catch {
      return [];
    }
  }

  #changedMs(id: string): TimeMs {
    return statSync(this.#pathOf(id), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  }

  #pathOf(id: string, ...names: string[]): string {
    return join(this.#folder, id, ...names);
  }
}

/** Appends at most `most` bytes, and counts the rest. */
async function appended(
  file: FileHandle,
  body: AsyncIterable<Uint8Array>,
  { most }: { most: Bytes },
): Promise<{ bytes: Bytes; left: Bytes }> {
  let [bytes, left] = [0, 0];
  for await (const chunk of body) {
    const fits = left === 0 && bytes + chunk.length <= most;
    if (fits) {
      await file.appendFile(chunk);
      bytes += chunk.length;
    } else {
      left += chunk.length;
    }
  }
  return { bytes, left };
}

async function drain(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of body) {
    // A sender that is interrupted while it writes does not read the answer.
  }
}

async function* nothing(): AsyncIterable<Uint8Array> {}

async function sumOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    hash.update(chunk);
  }
  return hash.digest("hex");
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  await folder.sync().finally(() => folder.close());
}

function done(bytes: Bytes): ArtifactOutcome {
  return { status: 200, answer: { nextOffset: bytes, complete: true } };
}

function refused(status: ArtifactOutcome["status"], error: string): ArtifactOutcome {
  return { status, answer: { error } };
}
