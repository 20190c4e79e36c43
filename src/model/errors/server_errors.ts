/** Errors of the server and of its clients. */
import { oneLine, TidemarkError } from "./errors.js";

/** TM-E080: another running server uses the folder of the store. `pid`: "" if unknown. */
export function storeInUse(folder: string, pid: string): TidemarkError {
  return new TidemarkError(
    "TM-E080",
    2,
    `${oneLine(folder)} is in use by another server${pid === "" ? "" : `, process ${pid}`}`,
    "",
    "stop that one, or name another folder with --store duckdb:DIR",
  );
}

/** TM-E081: the server cannot listen on its address. */
export function cannotListen(address: string, code: string, detail: string): TidemarkError {
  const why = code === "EADDRINUSE" ? "another program listens there" : oneLine(detail);
  return new TidemarkError(
    "TM-E081",
    2,
    `cannot listen on ${oneLine(address)}: ${why}`,
    "",
    "name another address, as in --listen 127.0.0.1:7071",
  );
}

/** TM-E082: no server answers, or it refuses. */
export function serverUnreachable(url: string, reason: string, next: string): TidemarkError {
  return new TidemarkError(
    "TM-E082",
    4,
    `no answer from the server ${oneLine(url)}: ${oneLine(reason)}`,
    "",
    next,
  );
}

/** TM-E083: the server requires a token, and none or a wrong one was given. */
export function tokenRefused(url: string): TidemarkError {
  return new TidemarkError(
    "TM-E083",
    3,
    `the server ${oneLine(url)} refused the token, or requires one`,
    "",
    "name a file that holds it with --token-file, or set TIDEMARK_TOKEN",
  );
}

/** TM-E084: the ClickHouse that --store names does not answer, refuses, or cannot be used. `number`: ClickHouse's own number
 * of the error, or "". */
export function databaseUnusable(
  place: string,
  reason: string,
  next: string,
  number = "",
): TidemarkError {
  return new TidemarkError(
    "TM-E084",
    2,
    `cannot use ${oneLine(place)}: ${oneLine(reason)}`,
    number === "" ? "" : numbered(number),
    next,
  );
}

/** Whether ClickHouse did not answer or refused. */
export function isOfDatabase(error: unknown): error is TidemarkError {
  return error instanceof TidemarkError && error.id === "TM-E084";
}

/** The same for another reason than a full disk: the same may succeed later. */
export function mayPass(error: unknown): boolean {
  return isOfDatabase(error) && error.why !== numbered(FULL_DISK);
}

/** Whether no replica of a shard of ClickHouse answers, or all that do lack rows. */
export function lacksShard(error: unknown): boolean {
  return (
    error instanceof TidemarkError && [NO_REPLICA, STALE_REPLICAS].map(numbered).includes(error.why)
  );
}

/** Whether another server of the cluster ended while it answered: asked again, the cluster uses the servers that run. */
export function endedMidway(error: unknown): boolean {
  return error instanceof TidemarkError && CUT_BETWEEN_SERVERS.map(numbered).includes(error.why);
}

/** Whether all servers that run made a change of tables, and others will when they are back. */
export function isDoneByThoseThatRun(error: unknown): boolean {
  return (
    error instanceof TidemarkError &&
    error.why === numbered(UNFINISHED_CHANGE) &&
    error.what.includes("(0 of them are currently active)")
  );
}

const NO_REPLICA = "279";
const STALE_REPLICAS = "369";
/** The end of a connection, a time-out, and an error of the network. */
const CUT_BETWEEN_SERVERS = ["32", "209", "210"];
const UNFINISHED_CHANGE = "159";
const FULL_DISK = "243";
const numbered = (number: string) => `ClickHouse's error ${number}`;
