/**
 * Asks all collectors for the GPU memory of all ranks of a job at the same moment, if one of its instances grows unlike its
 * siblings: then the ranks can be compared. Once in six hours for a service. Hosts whose programs use no device capture
 * nothing, and the policy of each host decides.
 */
import type { Millis, TimeMs } from "../../model/base/units.js";
import { oneLine } from "../../model/errors/errors.js";
import type { Diagnoses } from "../answers/diagnoses.js";
import { BY_DIAGNOSIS } from "./looks.js";
import type { RequestBook } from "./request_book.js";

const PAUSE_MS: Millis = 6 * 3_600_000;
/** Collectors ask every 10 seconds, later on a busy host or network. */
const AHEAD_MS: Millis = 30_000;
/** How long the request stays open, for the answers. */
const OPEN_MS: Millis = 120_000;
/** Only of services that report now. */
const RECENT_MS: Millis = 600_000;

export interface OddRankParts {
  readonly diagnoses: Pick<Diagnoses, "in">;
  readonly book: RequestBook;
  readonly info: (text: string) => void;
  /** Requests have changed. */
  readonly changed: () => void;
}

export async function requestRanks(
  { diagnoses, book, info, changed }: OddRankParts,
  nowMs: TimeMs,
): Promise<void> {
  const window = { startMs: nowMs - RECENT_MS, endMs: nowMs };
  for (const { service, oddInstances } of (await diagnoses.in(window, undefined)).diagnoses) {
    const before = book.document(service).requests;
    const isRecent = before.some(
      ({ timeMs, captures }) => captures !== undefined && Math.abs(nowMs - timeMs) < PAUSE_MS,
    );
    if (oddInstances.length === 0 || isRecent) {
      continue;
    }
    const made = book.add(
      {
        ...{ service, forMs: OPEN_MS, by: BY_DIAGNOSIS },
        captures: { atMs: nowMs + AHEAD_MS, what: ["gpu", "flight_recorder"] },
      },
      nowMs,
    );
    // Refused ones are tried again later: they wait for others to end.
    if (typeof made !== "string") {
      info(
        `${oneLine(service)}: ${oddInstances.length} of its instances grow unlike the others: the GPU memory of all ranks is requested`,
      );
      changed();
    }
  }
}
