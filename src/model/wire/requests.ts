/**
 * Requests and policy from a server to its collectors.
 *
 *     person ──POST /api/v1/requests──> server ──POST /api/v1/collector──> collector: its own policy decides
 *                                              <── outcome ──
 */
import { z } from "zod";
import type { TimeMs } from "../base/units.js";
import type { RequestJson } from "../documents/request_document.js";
import { LONGEST_REQUEST_MS, SHORTEST_REQUEST_MS } from "./requests_path.js";

export const COLLECTOR_PATH = "/api/v1/collector";
/** Requests that are open at the same time. */
export const MOST_OPEN_REQUESTS = 20;
export const MOST_POLICY_BYTES = 256 << 10;
/** And of those that name programs, which the diagnosis makes: so many services it looks at. */
export const MOST_NAMED_REQUESTS = 5;
/** And of those for captures. */
export const MOST_CAPTURE_REQUESTS = 5;
/** What a server may ask for: it pauses no program for long, and shows no contents of objects. */
const CAPTURES_ON_REQUEST = ["gpu", "flight_recorder"] as const;
/** Programs that one request names. */
export const MOST_PROGRAMS = 100;
const LONGEST_TEXT = 2_048;

const text = z.string().max(LONGEST_TEXT);

/** Body of `POST /api/v1/requests`. */
export const WANTED_REQUEST = z.strictObject({
  service: text.min(1),
  forMs: z.number().int().min(SHORTEST_REQUEST_MS).max(LONGEST_REQUEST_MS),
  by: text.optional(),
});

/** Body of `POST /api/v1/collector`. */
export const COLLECTOR_CALL = z.strictObject({
  host: text.min(1),
  answers: z
    .array(
      z.strictObject({
        id: z.uuid(),
        programs: z.number().int().min(0).max(1e6),
        why: text,
      }),
    )
    .max(MOST_OPEN_REQUESTS + MOST_NAMED_REQUESTS + MOST_CAPTURE_REQUESTS),
});
export type CollectorCall = z.infer<typeof COLLECTOR_CALL>;

/** Answer of `POST /api/v1/collector`. */
export interface CollectorAnswer {
  /** The server's clock, by which requests end. */
  readonly nowMs: TimeMs;
  /** A policy in YAML; null: the server hands out none; absent: it cannot read it, and collectors keep what they have. */
  readonly policy?: string | null;
  /** The open ones for all programs of a service. */
  readonly requests: readonly RequestJson[];
  /** The open ones that name programs. Apart, because an older collector would take them for all of the service. */
  readonly named?: readonly RequestJson[];
  /** The open ones for captures. Apart for the same reason. */
  readonly captures?: readonly RequestJson[];
}

const REQUEST = {
  id: z.uuid(),
  service: text.min(1),
  timeMs: z.number(),
  untilMs: z.number(),
  by: text,
};
const PROGRAM = z.object({ host: text, pid: z.number().int() });

const CAPTURES = z.object({
  atMs: z.number(),
  what: z.array(z.enum(CAPTURES_ON_REQUEST)).min(1).max(CAPTURES_ON_REQUEST.length),
});

/** Entries that are not as expected, such as those of a newer server, are left out. */
function requestsOf<Entry extends z.ZodType>(entry: Entry, most: number) {
  return z
    .array(z.unknown())
    .max(most)
    .transform((all) =>
      all.flatMap((one) => {
        const { success, data } = entry.safeParse(one);
        return success ? [data] : [];
      }),
    );
}

/** As a collector checks it; requests that are not as expected are left out. */
export const COLLECTOR_ANSWER = z.object({
  nowMs: z.number(),
  policy: z.string().max(MOST_POLICY_BYTES).nullable().optional(),
  requests: requestsOf(z.object(REQUEST), MOST_OPEN_REQUESTS),
  named: requestsOf(
    z.object({ ...REQUEST, programs: z.array(PROGRAM).max(MOST_PROGRAMS) }),
    MOST_NAMED_REQUESTS,
  ).default([]),
  captures: requestsOf(z.object({ ...REQUEST, captures: CAPTURES }), MOST_CAPTURE_REQUESTS).default(
    [],
  ),
});
