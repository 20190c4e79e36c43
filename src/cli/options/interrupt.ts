/** Ctrl-C while Tidemark has something inside a process: it is removed before the command ends. */

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * Runs `work` with a signal that an interrupt aborts; the message of the reason is the name of the interrupt. A second
 * interrupt does not end the command either, because that would leave behind what the first one is removing. A command
 * that another one started with a channel to it (watcher_beside.ts) is interrupted when that one dies.
 * `hangUp`: called on SIGHUP; the work goes on.
 */
export async function withInterrupt<Result>(
  work: (until: AbortSignal) => Promise<Result>,
  hangUp?: () => void,
): Promise<Result> {
  const interrupt = new AbortController();
  const stop = (signal: NodeJS.Signals) => interrupt.abort(new DOMException(signal, "AbortError"));
  const onHangUp = hangUp ?? stop;
  for (const signal of SIGNALS) {
    process.on(signal, stop);
  }
  process.on("SIGHUP", onHangUp);
  const orphaned = () => interrupt.abort(new DOMException("SIGTERM", "AbortError"));
  process.on("disconnect", orphaned);
  process.channel?.unref();
  try {
    return await work(interrupt.signal);
  } finally {
    for (const signal of SIGNALS) {
      process.off(signal, stop);
    }
    process.off("SIGHUP", onHangUp);
    process.off("disconnect", orphaned);
  }
}
