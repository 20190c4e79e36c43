/** Surroundings that a program may find itself in, as words that a command is started with. */

/** Runs shell lines, then the command in their place. */
export function inShell(lines: string): string[] {
  return ["sh", "-ec", `${lines}\nexec "$@"`, "sh"];
}

/** The same in a mount namespace of its own (root only): what is mounted there is gone with it. */
export function afterMounting(lines: string): string[] {
  return ["unshare", "--mount", "--propagation", "private", ...inShell(lines)];
}

/** As the user who owns nothing (root only). */
export const asNobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
