/**
 * Processes that end before any of them can be judged, such as a worker that its supervisor restarts every 20 s. Nothing about
 * them is certain; but if memory grew in several of their lives, what their diagnoses observed is worth naming.
 */
import type { Millis } from "../../model/base/units.js";
import { median } from "../series/trend.js";
import type { ShortLives } from "../wording/fleet_sentence.js";
import type { ServiceEvidence } from "./curves/fleet_evidence.js";

/** A life that is longer gets a verdict of its own. */
export const SHORT_LIFE_MS: Millis = 60_000;
/** Ends that count are newer than this. */
const RECENT_MS: Millis = 3_600_000;
const LEAST_LIVES = 2;

/** null: memory did not grow in several of them, or the processes of the newest version live longer. */
export function shortLives({ processes, window }: ServiceEvidence): ShortLives | null {
  const [newest] = [...processes].sort((a, b) => b.startedMs - a.startedMs);
  const ofVersion = processes.filter(({ version }) => version === newest?.version);
  const lifeOf = ({ startedMs, endedMs }: (typeof processes)[number]) =>
    (endedMs ?? window.endMs) - startedMs;
  const ended = ofVersion.filter(
    ({ endedMs }) => endedMs !== null && window.endMs - endedMs < RECENT_MS,
  );
  const growing = ended.filter(({ observed }) => observed !== undefined);
  const last = growing.at(-1)?.observed;
  return growing.length < LEAST_LIVES ||
    last === undefined ||
    ofVersion.some((each) => lifeOf(each) > SHORT_LIFE_MS)
    ? null
    : {
        lifeMs: median(ended.map(lifeOf)),
        growing: growing.length,
        of: ended.length,
        observed: last,
      };
}
