/** Ctrl-C while a process holds something of Tidemark's: it is taken back before the command ends. */

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs `work`, whose signal is aborted by an interrupt. A second one does not end the command either: it would leave
 * in the process what the first one is taking back. */
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
