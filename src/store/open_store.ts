import { join, resolve } from "node:path";
import { badUsage } from "../model/errors/errors.js";
import { refuseUnfinished } from "./backup/backup.js";
import { clickhouseAddress, isClickhouse, withoutPassword } from "./clickhouse/address.js";
import type { Store, StoreSettings } from "./interface/store.js";
import { importWithDuckdb } from "./with_duckdb.js";

const USUAL_LABEL_VALUES = 1_000;
const FOLDER = /^duckdb:(.+)$/;

/** The folder that "duckdb:FOLDER" names. Throws TidemarkError. */
export function storeFolder(name: string): string {
  const [, path] = FOLDER.exec(name) ?? [];
  if (path === undefined) {
    throw badUsage(
      isClickhouse(name)
        ? "this needs a store in a folder, not in ClickHouse"
        : `this store is not known: ${withoutPassword(name)}`,
      "name a folder, as in --store duckdb:/var/lib/tidemark",
    );
  }
  return resolve(path);
}

/** Where the server's files are beside a store in ClickHouse. */
interface FileSettings {
  /** Their folder; undefined: one in {@link usual}, of the address. */
  readonly files: string | undefined;
  readonly usual: string;
}

/** Throws TidemarkError. */
function folderOf(name: string, { files, usual = "" }: Partial<FileSettings>): string {
  if (!isClickhouse(name)) {
    if (files !== undefined) {
      throw badUsage(
        "--files has no effect with a store in a folder, which also holds the other files",
        "leave it out",
      );
    }
    return storeFolder(name);
  }
  const { host, port, database } = clickhouseAddress(name);
  const own = `clickhouse-${host.replaceAll(/[^\w.-]/g, "_")}-${port}-${database}`;
  return resolve(files ?? join(usual, own));
}

/** Opens "duckdb:FOLDER" or "clickhouse://USER:PASSWORD@HOST:PORT/DATABASE".
 * @returns the store, and the folder for other files. Throws TidemarkError. */
export async function openStore(
  name: string,
  { labelValues = USUAL_LABEL_VALUES, ...fileSettings }: Partial<StoreSettings & FileSettings> = {},
): Promise<{ store: Store; folder: string }> {
  const folder = folderOf(name, fileSettings);
  refuseUnfinished(folder);
  const settings = { labelValues };
  if (isClickhouse(name)) {
    const { openClickhouse } = await importWithDuckdb(
      "the server, which computes with it,",
      () => import("./clickhouse/open.js"),
    );
    return { store: await openClickhouse(name, folder, settings), folder };
  }
  const { openEmbedded } = await importWithDuckdb(
    "the server's embedded store",
    () => import("./embedded/open.js"),
  );
  return { store: await openEmbedded(folder, settings), folder };
}
