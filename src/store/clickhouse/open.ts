import type { Store, StoreSettings } from "../interface/store.js";
import { RowStore } from "../row_store/row_store.js";
import { clickhouseAddress } from "./address.js";
import { ClickhouseConnection } from "./connection.js";
import { ClickhouseDatabase } from "./database.js";
import { sweep } from "./sweep.js";

/** Opens the store in ClickHouse that `name` gives the address of. `folder`: for local files. Throws TidemarkError. */
export async function openClickhouse(
  name: string,
  folder: string,
  settings: StoreSettings,
): Promise<Store> {
  const connection = new ClickhouseConnection(clickhouseAddress(name));
  return RowStore.open(await ClickhouseDatabase.open(connection, folder), sweep, settings);
}
