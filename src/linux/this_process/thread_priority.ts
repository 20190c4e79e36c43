/** Lowers the priority of background work, which must not slow down the recorded program. */
import { setPriority } from "node:os";

/** It gets a third of a core for which another thread competes, and all of an idle one. */
const NICE = 5;
/** setpriority(2): on Linux it applies to this thread, not to its process. */
const THIS_THREAD = 0;

/** Lowers the priority of the calling worker thread from now on. */
export function lowerPriority(): void {
  try {
    setPriority(THIS_THREAD, NICE);
  } catch {
    // If it is not permitted, the work continues unchanged.
  }
}
