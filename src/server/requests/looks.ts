/**
 * Asks collectors to give the agent to two processes of a service that leaks in a line that nobody knows: an hour, and not
 * again for six hours, whatever comes of it. The policy of each host decides, as for the requests of people.
 */
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { RequestJson } from "../../model/documents/request_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { LONGEST_REQUEST_MS } from "../../model/wire/requests_path.js";
import type { Store } from "../../store/index.js";
import type { Diagnoses } from "../answers/diagnoses.js";
import type { RequestBook } from "./request_book.js";

const PAUSE_MS: Millis = 6 * 3_600_000;
/** In the list of requests. */
export const BY_DIAGNOSIS = "the diagnosis";

export interface LookParts {
  readonly store: Pick<Store, "instance">;
  readonly diagnoses: Pick<Diagnoses, "unseen">;
  readonly book: RequestBook;
  readonly info: (text: string) => void;
  /** Requests have changed. */
  readonly changed: () => void;
}

function isRecentLook(nowMs: TimeMs) {
  return ({ timeMs, captures }: RequestJson) =>
    captures === undefined && Math.abs(nowMs - timeMs) < PAUSE_MS;
}

/** Requests what the diagnosis at this time lacks. */
export async function requestLooks(
  { store, diagnoses, book, info, changed }: LookParts,
  nowMs: TimeMs,
): Promise<void> {
  for (const { service, processes } of await diagnoses.unseen(nowMs)) {
    const { requests } = book.document(service);
    if (requests.some(isRecentLook(nowMs))) {
      continue;
    }
    const found = await Promise.all(processes.map((stream) => store.instance(stream)));
    const programs = found.flatMap((row) =>
      row === null ? [] : [{ host: row.host, pid: row.pid }],
    );
    const wanted = { service, forMs: LONGEST_REQUEST_MS, by: BY_DIAGNOSIS, programs };
    const made = programs.length === 0 ? null : book.add(wanted, nowMs);
    // Refused ones are tried again later: they wait for others to end.
    if (made !== null && typeof made !== "string") {
      info(
        `${oneLine(service)} leaks in an unknown line: the agent is requested on ${programs.length} of its processes`,
      );
      changed();
    }
  }
}
