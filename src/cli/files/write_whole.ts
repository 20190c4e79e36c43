import { mkdirSync, readdirSync, realpathSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { constants } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { badUsage, fileUnusable, TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { statOf } from "./files.js";
import { type Replacing, requireReplaceable } from "./own_files.js";

/**
 * Writes a file so that it is there whole or not at all: `write` fills a neighbour, which then takes
 * the name. An interrupt leaves nothing behind. A device or pipe is written to as it is, a link leads to the file
 * that is written. Throws TidemarkError: TM-E017 where a file is there that may not be replaced.
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
  // A database's log lies beside it.
  const remove = () => [neighbour, `${neighbour}.wal`].forEach(removeIfThere);
  await guarded(path, neighbour, remove, async () => {
    await write(neighbour);
    renameSync(neighbour, place);
  });
}

/** A folder of our own that an interrupted run left by being killed: no table, and nothing foreign. */
const PART_FOLDER = /^\.\d+\.part$/;

/**
 * Writes the files of a folder so that they are all there whole or none is: `write` fills a folder inside
 * it and names the files, which then take their places, over those of the same name. A folder of something
 * else (files that do not end in `suffix`, or may not be replaced) is left alone. An interrupt leaves nothing behind.
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
    throw fileUnusable(folder, "write", "it is no directory");
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
        throw fileUnusable(folder, "write", `it holds other files (${name})`);
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

/** Runs `write`, which makes `part` before it makes `path`, and `remove` afterwards, whatever ends it.
 * What the system refuses is told of `path`. */
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
    // What the system does not let go stays.
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // It holds what was written.
  }
}

/** What went wrong with the neighbour, told of the file that was asked for. */
function underOwnName(error: TidemarkError, part: string, path: string): TidemarkError {
  const { id, exitCode, what, why, next } = error;
  return new TidemarkError(id, exitCode, what.replaceAll(part, path), why, next, {
    cause: error.cause,
  });
}

/** Throws TidemarkError where `output` would overwrite the very recording it is made from. */
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
