import {
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { constants } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { badUsage, fileUnusable, TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { statOf } from "./files.js";
import { type Replacing, requireReplaceable } from "./own_files.js";

/**
 * Writes a file completely or not at all: `write` fills a temporary file next to it, which is then renamed. An
 * interrupt leaves nothing behind. A device or pipe is written directly, and links are followed. Throws
 * TidemarkError: TM-E017 if the file exists and may not be replaced.
 */
export async function writeWhole(
  path: string,
  replacing: Replacing,
  write: (path: string) => Promise<void>,
): Promise<void> {
  const existing = statOf(path);
  if (existing?.isDirectory()) {
    throw fileUnusable(path, "write", "it is a directory");
  }
  if (existing !== undefined && !existing.isFile()) {
    return saying(path, () => write(path));
  }
  requireReplaceable(path, replacing);
  const place = existing === undefined ? path : realpathSync(path);
  const neighbour = join(dirname(place), `.${basename(place)}.${process.pid}.part`);
  // A database has a log file next to it.
  const remove = () => [neighbour, `${neighbour}.wal`].forEach(removeIfThere);
  await guarded(path, neighbour, remove, async () => {
    await write(neighbour);
    renameSync(neighbour, place);
  });
}

/** Throws what `writeWhole` would throw, before the work whose result is to be written. */
export async function requireWritable(path: string, replacing: Replacing): Promise<void> {
  const existing = statOf(path);
  if (existing?.isDirectory()) {
    throw fileUnusable(path, "write", "it is a directory");
  }
  requireReplaceable(path, replacing);
  if (existing === undefined || existing.isFile()) {
    const place = existing === undefined ? path : realpathSync(path);
    const neighbour = join(dirname(place), `.${basename(place)}.${process.pid}.part`);
    await saying(path, async () => writeFileSync(neighbour, ""));
    removeIfThere(neighbour);
  }
}

/** A folder left by a killed run of our own: it contains no table and no foreign file. */
const PART_FOLDER = /^\.\d+\.part$/;

/**
 * Writes all files of a folder or none: `write` fills a temporary folder inside it and names the files, which
 * are then moved into place and replace files of the same name. A folder with other contents (files without
 * `suffix`, or that may not be replaced) is not changed. An interrupt leaves nothing behind.
 * Throws TidemarkError.
 * @returns paths of the files
 */
export async function writeWholeFolder(
  folder: string,
  { suffix, ...replacing }: Replacing & { readonly suffix: string },
  write: (folder: string) => Promise<string[]>,
): Promise<string[]> {
  const existing = statOf(folder);
  if (existing !== undefined && !existing.isDirectory()) {
    throw fileUnusable(folder, "write", "it is not a directory");
  }
  const part = join(folder, `.${process.pid}.part`);
  const remove = () => {
    removeIfThere(part);
    if (existing === undefined) {
      removeIfEmpty(folder);
    }
  };
  let names: string[] = [];
  await guarded(folder, part, remove, async () => {
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(folder).filter((entry) => !PART_FOLDER.test(entry))) {
      if (!name.endsWith(suffix)) {
        throw fileUnusable(folder, "write", `it contains other files (${name})`);
      }
      requireReplaceable(join(folder, name), replacing);
    }
    mkdirSync(part);
    names = await write(part);
    for (const name of names) {
      renameSync(join(part, name), join(folder, name));
    }
  });
  return names.map((name) => join(folder, name));
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Runs `write`, which creates `part` and then `path`, and afterwards `remove`, however `write` ends. System
 * errors are reported for `path`.
 */
async function guarded(
  path: string,
  part: string,
  remove: () => void,
  write: () => Promise<void>,
): Promise<void> {
  const interrupted = (signal: NodeJS.Signals) => {
    remove();
    process.exit(128 + constants.signals[signal]);
  };
  for (const signal of SIGNALS) {
    process.once(signal, interrupted);
  }
  try {
    await saying(path, write);
  } catch (error) {
    throw error instanceof TidemarkError ? underOwnName(error, part, path) : error;
  } finally {
    remove();
    for (const signal of SIGNALS) {
      process.removeListener(signal, interrupted);
    }
  }
}

function removeIfThere(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Files that cannot be removed are left behind.
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // It contains the written data.
  }
}

/** An error with the temporary file, reported for the requested file. */
function underOwnName(error: TidemarkError, part: string, path: string): TidemarkError {
  const { id, exitCode, what, why, next } = error;
  return new TidemarkError(id, exitCode, what.replaceAll(part, path), why, next, {
    cause: error.cause,
  });
}

/** Throws TidemarkError if `output` would overwrite the recording it is made from. */
export function requireOtherFile(output: string, recording: string): void {
  const a = statOf(output);
  const b = statOf(recording);
  if (resolve(output) === resolve(recording) || (a && b && a.dev === b.dev && a.ino === b.ino)) {
    throw badUsage(`${output} is the recording itself`, "name another file with -o");
  }
}

async function saying(path: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    const { code, message } = reasonOf(error);
    if (error instanceof TidemarkError || !/^E[A-Z]+$/.test(code)) {
      throw error;
    }
    throw fileUnusable(path, "write", message);
  }
}
