/** Words about alerts that the server's notifications and the pages share. */
import type { AlertJson } from "./alert_document.js";

type About = Pick<AlertJson, "service" | "version" | "host" | "cause">;

/** "checkout since version 2.42.0", "checkout version 2.42.0", "host node-1" or "all hosts". */
export function alertSubject(alert: About): string {
  const { service, host } = alert;
  return service === ""
    ? host === ""
      ? "all hosts"
      : `host ${host}`
    : [service, alertVersion(alert)].filter((part) => part !== "").join(" ");
}

/** "" if the version is unknown, or the alert is about a host. */
export function alertVersion({ version, cause }: About): string {
  // What grows or needs more memory may go on in later versions.
  const isFirst = cause === "growth" || cause === "level";
  return version === "" ? "" : `${isFirst ? "since version" : "version"} ${version}`;
}
