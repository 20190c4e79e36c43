/**
 * Files of another process's root. A path such as /proc/PID/root/tmp/x must not be opened as it is: an absolute symbolic
 * link in it leads to a file of this process's root, so a container could make us read, or even write, a file of the
 * host. Here no link is followed, and a file that is no regular file is not opened: opening a FIFO would wait.
 */
import { closeSync, constants, fstatSync, openSync } from "node:fs";

/** Of include/uapi/asm-generic/fcntl.h: a descriptor that only leads on. */
const O_PATH = 0o10000000;

/**
 * Descriptor of a regular file, for reading; null if a part of the path is missing or a link, or may not be read.
 * `root`: "/proc/PID/root" of any process or thread.
 */
export function openFileBelow(root: string, path: string): number | null {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
  const descriptor = openBelow(root, path, flags);
  if (descriptor !== null && !fstatSync(descriptor).isFile()) {
    closeSync(descriptor);
    return null;
  }
  return descriptor;
}

/** Descriptor of a folder; null as for files. */
export function openFolderBelow(root: string, path: string): number | null {
  return openBelow(root, path, constants.O_RDONLY | constants.O_DIRECTORY);
}

function openBelow(root: string, path: string, flags: number): number | null {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  const last = parts.pop() ?? ".";
  if (last === ".." || parts.includes("..")) {
    return null;
  }
  let at: number | null = null;
  try {
    at = openSync(root, O_PATH | constants.O_DIRECTORY);
    for (const part of parts) {
      const flags = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
      const next: number = openSync(`/proc/self/fd/${at}/${part}`, flags);
      closeSync(at);
      at = next;
    }
    return openSync(`/proc/self/fd/${at}/${last}`, flags | constants.O_NOFOLLOW);
  } catch {
    return null;
  } finally {
    if (at !== null) {
      closeSync(at);
    }
  }
}
