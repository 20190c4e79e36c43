/**
 * Finds the stack that opens the descriptors that a program never closes.
 *
 *     descriptors that are open now, of one kind      /proc/PID/fd
 *       of those: who opened each, and when           the agent's log of openings
 *         of those: opened after the start, and       young ones may be closed soon
 *         open for a while
 *           by stack ──> the one with most
 */
import { isSocket, readDescriptors } from "../linux/index.js";
import type { Pid, StackId } from "../model/base/units.js";
import type { Opening } from "../segment/index.js";

/** Fewer may be coincidence. */
const FEWEST = 3;

/** Object types for descriptors of these kinds. */
const LEADS_TO: Readonly<Record<string, (link: string) => boolean>> = {
  "": () => true,
  "_io.FileIO": (link) => !isSocket(link),
  "_socket.socket": isSocket,
  "ssl.SSLSocket": isSocket,
  "select.epoll": (link) => link === "anon_inode:[eventpoll]",
  "sqlite3.Connection": (link) => link.startsWith("/"),
};

/**
 * `type`: of {@link handleObjects}; "" for descriptors without an object. `kept`: openings in the relevant
 * time. null if the type has no descriptors, or too few of them are known.
 */
export function openerOf(pid: Pid, type: string, kept: readonly Opening[]): StackId | null {
  const isOfKind = LEADS_TO[type];
  const open = isOfKind === undefined || kept.length === 0 ? null : readDescriptors(pid);
  if (open === null) {
    return null;
  }
  const counts = new Map<StackId, number>();
  for (const { descriptor, stack } of kept) {
    const link = open.get(descriptor);
    if (link !== undefined && isOfKind?.(link)) {
      counts.set(stack, (counts.get(stack) ?? 0) + 1);
    }
  }
  const [most] = [...counts].sort((a, b) => b[1] - a[1]);
  return most !== undefined && most[1] >= FEWEST ? most[0] : null;
}
