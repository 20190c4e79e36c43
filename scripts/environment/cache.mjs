/** The user's cache folder: large items that all clones share, each created once and atomically. */
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** ${XDG_CACHE_HOME:-~/.cache}/tidemark */
export function cacheFolder() {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "tidemark");
}

/**
 * A folder in the cache, created by `make` if it does not exist yet.
 *
 *     NAME-HASH         link, set last and by rename, so its target is complete
 *     NAME-HASH.PID/    the folder; never moved, because a virtual environment's scripts contain its path
 *
 * @param {string} name
 * @param {string[]} ingredients everything that determines the content
 * @param {(folder: string) => Promise<void>} make fills an empty folder; what it throws is passed on
 * @returns {Promise<string>} absolute path of the folder
 */
export async function cached(name, ingredients, make) {
  const hash = createHash("sha256").update(ingredients.join("\0")).digest("hex").slice(0, 16);
  const link = join(cacheFolder(), `${name}-${hash}`);
  if (existsSync(link)) {
    return realpathSync(link);
  }
  removeUnfinished(`${name}-${hash}.`);
  const folder = `${link}.${process.pid}`;
  mkdirSync(folder, { recursive: true });
  try {
    await make(folder);
    if (existsSync(link)) {
      throw new Error(`${link} was made by another set-up meanwhile`);
    }
    symlinkSync(folder, `${folder}.link`);
    renameSync(`${folder}.link`, link);
    return folder;
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    if (existsSync(link)) {
      return realpathSync(link);
    }
    throw error;
  }
}

/** @param {string} prefix of folders whose makers were killed */
function removeUnfinished(prefix) {
  if (!existsSync(cacheFolder())) {
    return;
  }
  for (const name of readdirSync(cacheFolder())) {
    const pid = Number(name.slice(prefix.length).split(".")[0]);
    if (name.startsWith(prefix) && !existsSync(`/proc/${pid}`)) {
      rmSync(join(cacheFolder(), name), { recursive: true, force: true });
    }
  }
}
