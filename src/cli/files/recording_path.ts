/** The path of a new recording. */

import { accessSync, constants, existsSync, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { badUsage, fileUnusable, recordingExists } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { programName } from "../../model/profile/program_name.js";
import { statOf } from "./files.js";

interface PathOptions {
  readonly output?: string;
  readonly force?: boolean;
}

/** The path given with -o, or NAME-TIME.tidemark in the current directory. Nothing is overwritten without -f. */
export function chooseRecordingPath(command: readonly string[], options: PathOptions): string {
  const path = resolve(options.output ?? unusedName(defaultRecordingName(command, new Date())));
  const existing = existingFile(path);
  if (existing !== undefined && !existing.isFile()) {
    throw fileUnusable(path, "write", "it is not a regular file");
  }
  if (existing !== undefined && options.force !== true) {
    throw recordingExists(path);
  }
  requireWritable(path);
  return path;
}

/** "app-20261121-014338.tidemark" in local time. */
export function defaultRecordingName(command: readonly string[], now: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const date = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
  const time = `${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`;
  const name =
    programName(command, resolve)
      .replace(/[^\w.+-]/g, "_")
      .slice(0, 100) || "program";
  return `${name}-${date}-${time}.tidemark`;
}

/** Two runs may start in the same second. */
function unusedName(name: string): string {
  let candidate = name;
  for (let number = 2; existsSync(candidate); number++) {
    candidate = name.replace(/\.tidemark$/, `-${number}.tidemark`);
  }
  return candidate;
}

/** Undefined if the path does not exist. Throws TidemarkError if it cannot exist because a parent is not a folder. */
function existingFile(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw fileUnusable(path, "write", reasonOf(error).message);
  }
}

/** Checked before the program starts; at the end of a long run it would be too late. */
function requireWritable(path: string): void {
  try {
    accessSync(existingFile(path) !== undefined ? path : dirname(resolve(path)), constants.W_OK);
  } catch (error) {
    throw fileUnusable(path, "write", reasonOf(error).message);
  }
}

/** Throws TidemarkError where an output would overwrite the program or one of its files, whatever --force says. */
export function requireNoInput(output: string | undefined, command: readonly string[]): void {
  const there = output === undefined ? undefined : statOf(output);
  const same = command.find((word) => {
    const file = statOf(word);
    return (
      there !== undefined && file?.isFile() && file.ino === there.ino && file.dev === there.dev
    );
  });
  if (same !== undefined) {
    throw badUsage(`${output} is part of the program to run`, "name another file");
  }
}
