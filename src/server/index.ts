/**
 * The server of a fleet: it receives recordings while they grow, keeps them, and answers queries about them.
 *
 * | folder | holds |
 * |---|---|
 * | `ingest/` | streams come in: checked, made durable, acknowledged, written to the store |
 * | `alerts/` | rules, states of alerts, receivers |
 * | `http/` | routes, tokens, limits, the pages |
 * | `client/` | the client of a server: `tidemark fleet` |
 *
 * Only {@link serve} loads the code that serves; a client does not need it. Everything here throws TidemarkError only.
 */
import type { BackupOutcome } from "../store/index.js";
import type { ServeConfig } from "./config.js";
import type { ServeOptions } from "./serve.js";

export { checkedUrl, type Destination } from "../recording/sender/post_connection.js";
export { FleetClient } from "./client/fleet_client.js";
export type { ServeOptions } from "./serve.js";
export { USUAL_LIMITS } from "./usual_limits.js";

/** Runs a server until it is asked to stop. */
export async function serve(options: ServeOptions): Promise<void> {
  const { serve: run } = await import("./serve.js");
  return run(options);
}

/** The configuration in a file. Throws TidemarkError. */
export async function readConfig(path: string): Promise<ServeConfig> {
  const { readConfig: read } = await import("./config.js");
  return read(path);
}

/** Writes a backup of a store, also while a server uses it. Throws TidemarkError. */
export async function backUpStore(store: string, target: string): Promise<BackupOutcome> {
  const { backUpStore: run } = await import("./backup.js");
  return run(store, target);
}

/** Restores a backup into a store that is new or empty. Throws TidemarkError. */
export async function restoreStore(store: string, from: string): Promise<BackupOutcome> {
  const { restoreStore: run } = await import("./backup.js");
  return run(store, from);
}
