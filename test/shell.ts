/** Environments that a program may run in, as words to put before a command. */
import { repository } from "./run.js";

/** Runs shell lines, then the command in their place. */
export function inShell(lines: string): string[] {
  return ["sh", "-ec", `${lines}\nexec "$@"`, "sh"];
}

/** The same in a separate mount namespace (root only), with which its mounts disappear. */
export function afterMounting(lines: string): string[] {
  return ["unshare", "--mount", "--propagation", "private", ...inShell(lines)];
}

/**
 * Shell lines that mount an empty file system over /tmp, which `then` fills or locks. A clone that is
 * itself below /tmp stays accessible.
 */
export function coverTmp(then: string): string {
  const lines = repository.startsWith("/tmp/")
    ? [
        `mount --bind '${repository}' /mnt`,
        "mount -t tmpfs -o size=64k none /tmp",
        `mkdir -p '${repository}'`,
        `mount --move /mnt '${repository}'`,
      ]
    : ["mount -t tmpfs -o size=64k none /tmp"];
  return [...lines, then].join("\n");
}

/** Runs as the user nobody (root only). */
export const asNobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
