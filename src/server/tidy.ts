/** Removes what is too old or too much, now and every ten minutes: artifacts, recordings, rows of the store. */
import type { Bytes, Millis } from "../model/base/units.js";
import { reasonOf } from "../model/errors/reason.js";
import type { Retention, Store, StreamFiles } from "../store/index.js";
import type { ArtifactFiles } from "./artifacts/artifact_files.js";
import type { Ingest } from "./ingest/ingest.js";
import { keepTime } from "./ingest/known_time.js";
import type { SteadyClock } from "./ingest/steady_clock.js";

const RETAIN_MS: Millis = 600_000;

/** How long, and how much, is kept. */
export interface KeptLimits {
  /** Of everything. */
  readonly keepMs: Millis;
  readonly keepRecordingsMs: Millis;
  readonly tiers: Retention["tiers"];
  readonly mostBytes: Bytes;
}

/** `limits`: asked each time, because they change while the server runs. Stop it with clearInterval. */
export function keepTidy(
  {
    store,
    files,
    ingest,
    artifacts,
    clock,
    folder,
  }: {
    store: Store;
    files: StreamFiles;
    ingest: Ingest;
    artifacts: ArtifactFiles;
    clock: SteadyClock;
    folder: string;
  },
  limits: () => KeptLimits,
  { warn, info }: { warn: (text: string) => void; info: (text: string) => void },
): NodeJS.Timeout {
  const attempt = async (what: string, work: () => void | Promise<void>) => {
    try {
      await work();
    } catch (error) {
      warn(`retention of ${what} failed: ${reasonOf(error).message}`);
    }
  };
  const tidy = async () => {
    const { keepMs, keepRecordingsMs, tiers, mostBytes } = limits();
    const nowMs = clock.earliestMs();
    await attempt("the time", () => keepTime(folder, nowMs));
    await attempt("artifacts", () => {
      for (const reason of artifacts.tidy(nowMs)) {
        warn(`could not remove an artifact: ${reason}`);
      }
    });
    await attempt("recordings", async () => {
      const streams = (await files.list()).sort((a, b) => a.changedMs - b.changedMs);
      let bytes = streams.reduce((sum, file) => sum + file.bytes, 0);
      for (const file of streams) {
        // Half of the limit is for the recordings, half for the database.
        if (file.changedMs < nowMs - Math.min(keepMs, keepRecordingsMs) || bytes > mostBytes / 2) {
          await ingest.remove(file.stream);
          bytes -= file.bytes;
        }
      }
    });
    await attempt("rows", async () => {
      const retention = { keepMs, mostBytes: mostBytes / 2, tiers };
      const recordings = (await files.list()).map(({ stream }) => stream);
      const { removed, rolled, failed, notSwept } = await store.retain(
        retention,
        nowMs,
        recordings,
      );
      for (const { day, reason } of failed) {
        warn(`could not roll up ${day}: ${reason}`);
      }
      if (notSwept !== null) {
        warn(`names that no row refers to any more could not be removed: ${notSwept}`);
      }
      if (removed.length > 0) {
        warn(`removed the rows of ${removed.join(", ")} by retention`);
      }
      if (rolled.length > 0) {
        const days = rolled.map(({ day, tier }) => `${day} to ${tier}`);
        info(`rolled up ${days.join(", ")}`);
      }
    });
  };
  void tidy();
  return setInterval(() => void tidy(), RETAIN_MS);
}
