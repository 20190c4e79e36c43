import { homedir } from "node:os";
import { join } from "node:path";

export { FLEET_PAGES_PATH } from "../../linux/installation.js";

/** The default data folder of a server that this user runs. */
export function defaultServerFolder(): string {
  const base = process.env.XDG_DATA_HOME || join(homedir(), ".local/share");
  return join(base, "tidemark/server");
}
