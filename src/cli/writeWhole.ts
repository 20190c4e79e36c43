import { renameSync, unlinkSync } from "node:fs";
import { constants } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { badUsage, fileUnusable, TidemarkError } from "../model/errors.js";
import { statOf } from "./files.js";

/**
 * Writes a file so that it is there whole or not at all: `write` fills a neighbour, which then takes
 * the name. An interrupt leaves nothing behind. A device or pipe is written to as it is.
 * Throws TidemarkError.
 */
export async function writeWhole(
  path: string,
  write: (path: string) => Promise<void>,
): Promise<void> {
  const existing = statOf(path);
  if (existing?.isDirectory()) {
    throw fileUnusable(path, "write", "it is a directory");
  }
  if (existing !== undefined && !existing.isFile()) {
    return guarded(path, () => write(path));
  }
  const neighbour = join(dirname(path), `.${basename(path)}.${process.pid}.part`);
  // A database's log lies beside it.
  const remove = () => [neighbour, `${neighbour}.wal`].forEach(removeIfThere);
  const interrupted = (signal: NodeJS.Signals) => {
    remove();
    process.exit(128 + constants.signals[signal]);
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) {
    process.once(signal, interrupted);
  }
  try {
    await guarded(path, async () => {
      await write(neighbour);
      renameSync(neighbour, path);
    });
  } catch (error) {
    throw error instanceof TidemarkError ? underOwnName(error, neighbour, path) : error;
  } finally {
    remove();
    for (const signal of signals) {
      process.removeListener(signal, interrupted);
    }
  }
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was never made.
  }
}

/** What went wrong with the neighbour, told of the file that was asked for. */
function underOwnName(error: TidemarkError, neighbour: string, path: string): TidemarkError {
  const { id, exitCode, what, why, next } = error;
  return new TidemarkError(id, exitCode, what.replaceAll(neighbour, path), why, next);
}

/** Throws TidemarkError where `output` would overwrite the very recording it is made from. */
export function requireOtherFile(output: string, recording: string): void {
  const a = statOf(output);
  const b = statOf(recording);
  if (resolve(output) === resolve(recording) || (a && b && a.dev === b.dev && a.ino === b.ino)) {
    throw badUsage(`${output} is the recording itself`, "name another file with -o");
  }
}

async function guarded(path: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (error instanceof TidemarkError || typeof code !== "string" || !/^E[A-Z]+$/.test(code)) {
      throw error;
    }
    throw fileUnusable(path, "write", (error as Error).message);
  }
}
