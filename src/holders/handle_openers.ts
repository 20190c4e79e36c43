/**
 * Which stack opens the descriptors that a program never closes.
 *
 *     descriptors that are open now, of one kind      /proc/PID/fd
 *       of those: who opened each, and when           the agent's openings
 *         of those: opened after the start, and       what is young may be closed in a moment
 *         open for a while
 *           by stack ──> the one with most
 */
import { isSocket, readDescriptors } from "../linux/index.js";
import type { Pid, StackId } from "../model/base/units.js";
import type { Opening } from "../segment/index.js";

/** Fewer tell of chance. */
const FEWEST = 3;

/** Objects of these types stand for descriptors that lead there. */
const LEADS_TO: Readonly<Record<string, (link: string) => boolean>> = {
  "": () => true,
  "_io.FileIO": (link) => !isSocket(link),
  "_socket.socket": isSocket,
  "ssl.SSLSocket": isSocket,
  "select.epoll": (link) => link === "anon_inode:[eventpoll]",
  "sqlite3.Connection": (link) => link.startsWith("/"),
};

/** `type`: of {@link handleObjects}; "" for descriptors that no object stands for. `kept`: openings of the time
 * that counts. null where the type stands for no descriptors, or too few of them are known. */
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
