/**
 * The captures of triggers on disk: one folder for each, next to the recordings, bounded by count, age and bytes.
 *
 *     FOLDER/artifacts/checkout-4242-20261126-101500/
 *         about.json        tidemark.artifact/1: program, reason, list of the files
 *         diagnosis.json ledger-4242.json census-4242.json ...
 */
import {
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { copyFile, link } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import type { ArtifactJson } from "../../model/documents/artifact_document.js";
import { makeFolder } from "../../recording/frames/make_folder.js";
import { boundedAbout } from "./bounded_about.js";
import { pathIn } from "./kept_recordings.js";

const ABOUT = "about.json";
const RECORDING = "recording.tidemark";

export interface ArtifactBounds {
  /** Newest artifacts of one service that stay. */
  readonly count: number;
  readonly keepMs: Millis;
  /** Total size of all artifacts. */
  readonly mostBytes: Bytes;
}

interface Kept {
  readonly path: string;
  readonly service: string;
  readonly timeMs: TimeMs;
  readonly bytes: Bytes;
  readonly hasFiles: boolean;
}

export class Artifacts {
  readonly #folder: string;
  /** Artifacts that are being written. */
  readonly #open = new Set<string>();

  /** `folder`: of the recordings. */
  constructor(folder: string) {
    this.#folder = join(folder, "artifacts");
  }

  /**
   * Creates the folder of a new artifact, which stays at least until {@link written}. If this process dies in the
   * meantime, `about` is what is left. Throws TidemarkError, or a system error if the disk is full.
   */
  begin(about: ArtifactJson): string {
    const { service, pid, timeMs } = about;
    const path = pathIn(this.#folder, service, pid, timeMs, "", existsSync);
    makeFolder(path);
    this.#open.add(path);
    try {
      writeAbout(path, about);
    } catch (error) {
      this.written(path, { ...about, files: [] });
      throw error;
    }
    return path;
  }

  /** Without files there is nothing to keep. */
  written(path: string, about: ArtifactJson): void {
    this.#open.delete(path);
    if (about.files.length === 0) {
      rmSync(path, { recursive: true, force: true });
    } else {
      writeAbout(path, about);
    }
  }

  /**
   * Keeps a recording although it may be removed from its own folder. `isGrowing`: as it is now. Rejects with system errors.
   */
  async keepRecording(path: string, recording: string, isGrowing: boolean): Promise<string> {
    const kept = join(path, RECORDING);
    try {
      if (isGrowing) {
        await copyFile(recording, kept, constants.COPYFILE_FICLONE);
      } else {
        await link(recording, kept);
      }
    } catch {
      await copyFile(recording, kept); // another file system, or one without links
    }
    return basename(kept);
  }

  /** Removes artifacts beyond the bounds, oldest first; other folders are not touched. */
  tidy({ count, keepMs, mostBytes }: ArtifactBounds, nowMs: TimeMs): void {
    const newestFirst = this.#kept().sort((a, b) => b.timeMs - a.timeMs);
    const ofService = new Map<string, number>();
    let bytes = 0;
    for (const artifact of newestFirst) {
      const number = (ofService.get(artifact.service) ?? 0) + 1;
      ofService.set(artifact.service, number);
      bytes += artifact.bytes;
      if (number > count || nowMs - artifact.timeMs > keepMs || bytes > mostBytes) {
        rmSync(artifact.path, { recursive: true, force: true });
      }
    }
  }

  /** Finished artifacts with files whose folder lacks a file of this name, oldest first. */
  unsent(mark: string): { readonly path: string; readonly bytes: Bytes }[] {
    return this.#kept((path) => !existsSync(join(path, mark)))
      .filter(({ hasFiles }) => hasFiles)
      .sort((a, b) => a.timeMs - b.timeMs);
  }

  #kept(isWanted: (path: string) => boolean = () => true): Kept[] {
    return namesIn(this.#folder).flatMap((name) => {
      const path = join(this.#folder, name);
      const about = this.#open.has(path) || !isWanted(path) ? null : aboutIn(path);
      return about === null
        ? []
        : [
            {
              ...{ path, service: about.service, timeMs: about.timeMs, bytes: bytesIn(path) },
              hasFiles: about.files.length > 0,
            },
          ];
    });
  }
}

/** A reader sees either the old text or the new one. */
function writeAbout(folder: string, about: ArtifactJson): void {
  const path = join(folder, ABOUT);
  writeFileSync(`${path}.new`, `${JSON.stringify(boundedAbout(about), null, 2)}\n`);
  renameSync(`${path}.new`, path);
}

function aboutIn(folder: string): ArtifactJson | null {
  try {
    const about = JSON.parse(readFileSync(join(folder, ABOUT), "utf8"));
    return about?.schema === "tidemark.artifact/1" ? about : null;
  } catch {
    return null; // not an artifact
  }
}

function bytesIn(folder: string): Bytes {
  const size = (name: string) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
  return namesIn(folder).reduce((sum, name) => sum + size(name), 0);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
