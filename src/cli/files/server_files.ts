import { homedir } from "node:os";
import { join } from "node:path";

export { FLEET_PAGES_PATH } from "../../linux/installation.js";

/** Where a server of this user keeps everything unless --store says otherwise. */
export function defaultServerFolder(): string {
  return inDataHome("server");
}

/** Where `watch` keeps recordings unless --folder says otherwise. */
export function defaultWatchFolder(): string {
  return inDataHome("watch");
}

function inDataHome(name: string): string {
  return join(process.env.XDG_DATA_HOME || join(homedir(), ".local/share"), "tidemark", name);
}
