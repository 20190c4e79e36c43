/** Backups as `tidemark serve --backup` and `--restore` make them. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileNotFound } from "../model/errors/errors.js";
import {
  type BackupOutcome,
  backUp,
  openStore,
  restore,
  StreamFiles,
  storeFolder,
} from "../store/index.js";
import { requestBackup } from "./control.js";

/** Writes a backup of a store to the folder `target`: by the server that uses the store, or here if none runs.
 * Throws TidemarkError. */
export async function backUpStore(name: string, target: string): Promise<BackupOutcome> {
  const source = storeFolder(name);
  if (!existsSync(source)) {
    throw fileNotFound(source, "store");
  }
  // The server has another working folder.
  const byServer = await requestBackup(source, resolve(target));
  if (byServer !== null) {
    return byServer;
  }
  const { store } = await openStore(name);
  try {
    return await backUp({ store, files: new StreamFiles(join(source, "streams")), source }, target);
  } finally {
    await store.close();
  }
}

/** Restores a backup to the folder of a store, which must be new or empty. Throws TidemarkError. */
export function restoreStore(name: string, from: string): Promise<BackupOutcome> {
  return restore(from, storeFolder(name));
}
