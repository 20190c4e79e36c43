import { readText } from "./proc_files.js";

let names: Map<number, string> | undefined;

/** The user's name from /etc/passwd, otherwise the number. */
export function userName(uid: number): string {
  names ??= parsePasswords(readText("/etc/passwd") ?? "");
  return names.get(uid) ?? String(uid);
}

export function parsePasswords(text: string): Map<number, string> {
  const users = new Map<number, string>();
  for (const line of text.split("\n")) {
    const [name, , uid] = line.split(":");
    if (name && uid && /^\d+$/.test(uid) && !users.has(Number(uid))) {
      users.set(Number(uid), name);
    }
  }
  return users;
}
