/**
 * The server of a fleet: it takes recordings while they grow, keeps them, and answers questions about them.
 *
 * | folder | holds |
 * |---|---|
 * | `ingest/` | streams come in: checked, made durable, acknowledged, written to the store |
 * | `http/` | routes, tokens, limits, the pages |
 * | `client/` | who asks a server: `tidemark fleet` |
 *
 * What serves is loaded only by {@link serve}: a client needs none of it. Everything here throws TidemarkError only.
 */
import type { ServeOptions } from "./serve.js";

export { checkedUrl, type Destination } from "../recording/sender/post_connection.js";
export { FleetClient } from "./client/fleet_client.js";

/** Runs a server until it is asked to stop. */
export async function serve(options: ServeOptions): Promise<void> {
  const { serve: run } = await import("./serve.js");
  return run(options);
}
