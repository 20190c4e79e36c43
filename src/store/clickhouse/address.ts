/** Where a ClickHouse is: clickhouse://USER:PASSWORD@HOST:PORT/DATABASE, or that with ?cluster=NAME. */
import { badUsage, oneLine } from "../../model/errors/errors.js";

const USUAL_PORT = 8123;
const USUAL_DATABASE = "tidemark";

export interface ClickhouseAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Its tables are divided among the shards of this cluster, as ClickHouse's configuration names it; null: they are not. */
  readonly cluster: string | null;
}

const SCHEME = /^clickhouse:\/\//i;

/** Whether it is meant as the address of a ClickHouse. */
export function isClickhouse(name: string): boolean {
  return SCHEME.test(name);
}

/** For messages: nothing between the scheme and the last @, where a password may be. */
export function withoutPassword(name: string): string {
  return oneLine(name.replace(/^(\w+:\/*)?.*@/s, "$1...@"), 100);
}

/** Reads clickhouse://USER:PASSWORD@HOST:PORT/DATABASE?cluster=NAME. Throws TidemarkError. */
export function clickhouseAddress(name: string): ClickhouseAddress {
  let address: ClickhouseAddress;
  try {
    address = partsOf(name);
  } catch {
    throw badUsage(
      `this is not an address of ClickHouse: ${withoutPassword(name)}`,
      `name it as in --store clickhouse://USER:PASSWORD@HOST:8123/DATABASE${name.includes("@") ? ESCAPES : ""}`,
    );
  }
  const { database } = address;
  if (!/^[A-Za-z_]\w{0,63}$/.test(database)) {
    throw badUsage(
      `this is not a name of a database${database.includes("@") ? "" : `: ${oneLine(database, 100)}`}`,
      `use letters, digits and _${database.includes("@") ? ESCAPES : ""}`,
    );
  }
  return address;
}

const ESCAPES =
  "; in the user and the password, write / @ : ? # percent-encoded: %2F %40 %3A %3F %23";

const CLUSTER = /\?cluster=([A-Za-z_][\w-]{0,63})$/;

/** Throws if it is no URL, has broken escapes, or has more or less than an address. */
function partsOf(name: string): ClickhouseAddress {
  const [, cluster = null] = CLUSTER.exec(name) ?? [];
  const rest = name.replace(SCHEME, "").replace(CLUSTER, "");
  const url = new URL(`http://${rest}`);
  const [place = "", path] = rest.split("/");
  // new URL() looks for a host behind further slashes, and leaves out port 80.
  const [, port] = /:(\d+)$/.exec(place) ?? [];
  if (
    !isClickhouse(name) ||
    place === "" ||
    path === "" ||
    /[?#\\]/.test(rest) ||
    Number(port) === 0
  ) {
    throw new Error("it has more or less than an address");
  }
  return {
    // An address of IPv6 has brackets.
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port ?? USUAL_PORT),
    user: decodeURIComponent(url.username) || "default",
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)) || USUAL_DATABASE,
    cluster,
  };
}

/** The address without its password. */
export function placeOf({ host, port, user, database, cluster }: ClickhouseAddress): string {
  const place = `clickhouse://${user}@${host.includes(":") ? `[${host}]` : host}:${port}/${database}`;
  return cluster === null ? place : `${place}?cluster=${cluster}`;
}
