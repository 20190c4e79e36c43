import { homedir } from "node:os";
import { join } from "node:path";

export { FLEET_PAGES_PATH } from "../../linux/installation.js";

/** The default of `serve --store`. */
export function defaultServerFolder(): string {
  return inDataHome("server");
}

/** The default of `serve --demo --store`. */
export function defaultDemoFolder(): string {
  return inDataHome("demo");
}

/** The default of `watch --folder`. */
export function defaultWatchFolder(): string {
  return inDataHome("watch");
}

function inDataHome(name: string): string {
  return join(process.env.XDG_DATA_HOME || join(homedir(), ".local/share"), "tidemark", name);
}
