/** Surroundings that a program may find itself in, as words that a command is started with. */
import { repository } from "./run.js";

/** Runs shell lines, then the command in their place. */
export function inShell(lines: string): string[] {
  return ["sh", "-ec", `${lines}\nexec "$@"`, "sh"];
}

/** The same in a mount namespace of its own (root only): what is mounted there is gone with it. */
export function afterMounting(lines: string): string[] {
  return ["unshare", "--mount", "--propagation", "private", ...inShell(lines)];
}

/**
 * Shell lines that put an empty file system over /tmp, which `then` fills or locks. A clone that lies
 * below /tmp itself stays where it is.
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

/** As the user who owns nothing (root only). */
export const asNobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
