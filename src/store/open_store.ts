import { resolve } from "node:path";
import { badUsage } from "../model/errors/errors.js";
import { refuseUnfinished } from "./backup/backup.js";
import type { Store, StoreSettings } from "./interface/store.js";
import { importWithDuckdb } from "./with_duckdb.js";

const USUAL_LABEL_VALUES = 1_000;

/** The folder that "duckdb:FOLDER" names. Throws TidemarkError. */
export function storeFolder(name: string): string {
  const [, path] = /^duckdb:(.+)$/.exec(name) ?? [];
  if (path === undefined) {
    throw badUsage(
      `this store is not known: ${name}`,
      "name a folder, as in --store duckdb:/var/lib/tidemark",
    );
  }
  return resolve(path);
}

/** Opens "duckdb:FOLDER". @returns the store, and the folder for other files. Throws TidemarkError. */
export async function openStore(
  name: string,
  { labelValues = USUAL_LABEL_VALUES }: Partial<StoreSettings> = {},
): Promise<{ store: Store; folder: string }> {
  const folder = storeFolder(name);
  refuseUnfinished(folder);
  const { openEmbedded } = await importWithDuckdb(
    "the server's embedded store",
    () => import("./embedded/open.js"),
  );
  return { store: await openEmbedded(folder, { labelValues }), folder };
}
