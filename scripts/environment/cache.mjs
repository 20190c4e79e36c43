/** The user's cache folder: large things that every clone shares, each made once and whole. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** ${XDG_CACHE_HOME:-~/.cache}/tidemark */
export function cacheFolder() {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "tidemark");
}

/**
 * The folder NAME-HASH of the cache, made by `make` where it is not there yet: in a folder beside
 * it, renamed when `make` has returned.
 * @param {string} name
 * @param {string[]} ingredients everything that decides the content
 * @param {(folder: string) => Promise<void>} make fills an empty folder; what it throws is passed on
 * @param {{fixedPath?: boolean}} [options] fixedPath: the content knows its own path (a virtual
 *   environment does), so it is made in place and a mark is set last instead of the rename
 * @returns {Promise<string>} absolute path
 */
export async function cached(name, ingredients, make, { fixedPath = false } = {}) {
  const hash = createHash("sha256").update(ingredients.join("\0")).digest("hex").slice(0, 16);
  const place = join(cacheFolder(), `${name}-${hash}`);
  const mark = join(place, ".whole");
  if (fixedPath ? existsSync(mark) : existsSync(place)) return place;
  const folder = fixedPath ? place : `${place}.${process.pid}`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  try {
    await make(folder);
    return place;
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}
