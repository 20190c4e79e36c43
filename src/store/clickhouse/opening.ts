/** Opens a database of ClickHouse: creates its tables, and refuses one that cannot be used, in one line. */
import { unknownVersion } from "../../model/errors/errors.js";
import { databaseUnusable } from "../../model/errors/server_errors.js";
import type { ClickhouseConnection } from "./connection.js";
import { RowBinary } from "./row_binary.js";
import {
  CLICKHOUSE_TABLES,
  type ClickhouseTableName,
  columnNames,
  columnTypes,
  createStatements,
  type Dialect,
  dialectOf,
  literal,
  OLDEST_TEXT,
  SHARD_SUFFIX,
  TABLES_VERSION,
  tableNames,
} from "./tables.js";

const TABLE_NAMES = Object.keys(CLICKHOUSE_TABLES) as ClickhouseTableName[];

/** Throws TidemarkError. */
export async function prepareDatabase(clickhouse: ClickhouseConnection): Promise<Dialect> {
  const { database, place, cluster } = clickhouse;
  const [about] = await clickhouse.rows("SELECT version() AS version");
  const version = String(about?.version ?? "");
  const dialect = dialectOf(version);
  if (dialect === null) {
    throw databaseUnusable(
      place,
      `ClickHouse ${version || "of an unknown version"} is too old`,
      `use ClickHouse ${OLDEST_TEXT} or newer`,
    );
  }
  clickhouse.isModern = dialect.isModern;
  await refuseUnknownCluster(clickhouse);
  const found = await clickhouse.rows(
    `SELECT name FROM system.tables WHERE database = ${literal(database)}`,
  );
  const names = new Set(found.map(({ name }) => String(name)));
  const written = names.size > 0 ? await refuseOthers(clickhouse, names) : 0;
  if (written > 0 && tableNames(cluster).every((table) => names.has(table))) {
    return dialect;
  }
  const everywhere = cluster === null ? "" : ` ON CLUSTER ${cluster}`;
  await clickhouse.run(`CREATE DATABASE IF NOT EXISTS ${database}${everywhere}`);
  // `about` is created first: a database that a crash left with some of the tables is ours.
  for (const table of TABLE_NAMES) {
    for (const statement of createStatements(clickhouse, table, dialect)) {
      await clickhouse.run(statement);
    }
  }
  if (written === 0) {
    const rows = new RowBinary();
    rows.addRow(columnTypes("about"), [TABLES_VERSION]);
    await clickhouse.insert("about", columnNames("about"), rows.bytes);
  }
  return dialect;
}

async function refuseUnknownCluster(clickhouse: ClickhouseConnection): Promise<void> {
  const { place, cluster } = clickhouse;
  if (cluster === null) {
    return;
  }
  const found = await clickhouse.rows("SELECT DISTINCT cluster FROM system.clusters");
  const names = found.map((row) => String(row.cluster));
  if (!names.includes(cluster)) {
    throw databaseUnusable(
      place,
      `ClickHouse knows no cluster ${cluster}`,
      names.length === 0
        ? "add it to remote_servers in its configuration"
        : `name one of these: ${names.slice(0, 5).join(", ")}`,
    );
  }
}

/** @returns the version of its tables; 0: a first start ended before it was written */
async function refuseOthers(
  clickhouse: ClickhouseConnection,
  names: ReadonlySet<string>,
): Promise<number> {
  const { database, place, cluster } = clickhouse;
  const isDivided = [...names].some((name) => name.endsWith(SHARD_SUFFIX));
  if (names.has("about") && names.has("metrics") && isDivided !== (cluster !== null)) {
    throw databaseUnusable(
      place,
      `its tables are ${isDivided ? "" : "not "}divided among the shards of a cluster`,
      isDivided ? "name the cluster: .../DATABASE?cluster=NAME" : "name another database",
    );
  }
  const others = [...names].filter((name) => !tableNames(cluster).includes(name)).sort();
  const columns = await clickhouse.rows(
    `SELECT table, name, type FROM system.columns WHERE database = ${literal(database)}`,
  );
  const found = new Map(columns.map(({ table, name, type }) => [`${table}.${name}`, type]));
  // A newer version may have another `about`, but with the column `version`.
  const isOurs = TABLE_NAMES.filter((table) => table !== "about" && names.has(table)).every(
    (table) => {
      const ours = Object.entries(CLICKHOUSE_TABLES[table].columns);
      const count = columns.filter((column) => column.table === table).length;
      return (
        count === ours.length &&
        ours.every(([name, type]) => found.get(`${table}.${name}`) === type)
      );
    },
  );
  if (!names.has("about") || others.length > 0) {
    throw databaseUnusable(
      place,
      `the database has other tables: ${(others.length > 0 ? others : [...names]).slice(0, 3).join(", ")}`,
      "name another database; it is created if it does not exist",
    );
  }
  const [row] = await clickhouse.rows(`SELECT max(version) AS version FROM ${database}.about`);
  const version = Number(row?.version ?? 0);
  if (version > TABLES_VERSION) {
    throw unknownVersion(place, version, TABLES_VERSION);
  }
  if (!isOurs) {
    throw databaseUnusable(
      place,
      "its tables have other columns",
      "name another database; it is created if it does not exist",
    );
  }
  return version;
}
