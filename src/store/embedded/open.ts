import { StoreDatabase } from "../duckdb/database.js";
import type { Store, StoreSettings } from "../interface/store.js";
import { RowStore } from "../row_store/row_store.js";
import { sweep } from "./sweep.js";

/** Opens the embedded store: DuckDB files in one folder (../duckdb/database.ts). Throws TidemarkError. */
export async function openEmbedded(folder: string, settings: StoreSettings): Promise<Store> {
  return RowStore.open(await StoreDatabase.open(folder), sweep, settings);
}
