/** Lowers the priority of background work, which must not slow down the recorded program. */
import { setPriority } from "node:os";

/** A third of the time of a core that somebody else wants, too; all of one that is idle. */
const NICE = 5;
/** setpriority(2): on Linux of this thread, not of its process. */
const THIS_THREAD = 0;

/** For a worker's thread: lets others go first from now on. */
export function giveWay(): void {
  try {
    setPriority(THIS_THREAD, NICE);
  } catch {
    // If it is not permitted, the work continues unchanged.
  }
}
