/** Ctrl-C while Tidemark has something inside a process: it is removed before the command ends. */

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Runs `work` with a signal that an interrupt aborts. A second interrupt does not end the command either,
 * because that would leave behind what the first one is removing.
 */
export async function withInterrupt<Result>(
  work: (until: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const interrupt = new AbortController();
  const stop = () => interrupt.abort();
  for (const signal of SIGNALS) {
    process.on(signal, stop);
  }
  try {
    return await work(interrupt.signal);
  } finally {
    for (const signal of SIGNALS) {
      process.off(signal, stop);
    }
  }
}
