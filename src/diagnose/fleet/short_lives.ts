/**
 * Processes that end before any of them can be judged, such as a worker that its supervisor restarts every 20 s: nothing about
 * them is certain, but a line that keeps what it allocates in several of their lives is worth naming.
 */
import type { Millis } from "../../model/base/units.js";
import { callsForAction } from "../../model/documents/diagnosis_document.js";
import { median } from "../series/trend.js";
import type { RepeatedLine } from "../wording/fleet_sentence.js";
import type { LineHolder, ServiceEvidence } from "./fleet_evidence.js";

/** A life that is longer gets a verdict of its own. */
const SHORT_MS: Millis = 60_000;
/** Ends that count are newer than this. */
const RECENT_MS: Millis = 3_600_000;
const LEAST_LIVES = 2;

/** null: no line was seen twice, or the processes of the newest version live longer. */
export function repeatedLine({ processes, window }: ServiceEvidence): RepeatedLine | null {
  const newest = [...processes].sort((a, b) => b.startedMs - a.startedMs)[0];
  const ofVersion = processes.filter(({ version }) => version === newest?.version);
  const lifeOf = ({ startedMs, endedMs }: (typeof processes)[number]) =>
    (endedMs ?? window.endMs) - startedMs;
  const ended = ofVersion.filter(
    ({ endedMs }) => endedMs !== null && window.endMs - endedMs < RECENT_MS,
  );
  const lifeMs = median(ended.map(lifeOf));
  if (ended.length < LEAST_LIVES || ofVersion.some((each) => lifeOf(each) > SHORT_MS)) {
    return null;
  }
  const seen = new Map<string, { readonly holder: LineHolder; lives: number }>();
  for (const { kind, holders } of ended) {
    const [holder] = holders;
    const isOpen = kind === "insufficient-evidence" || (kind !== null && callsForAction(kind));
    if (holder !== undefined && isOpen) {
      const { function: name, file, line } = holder.line;
      const key = `${name} ${file}:${line}`;
      const before = seen.get(key);
      seen.set(key, { holder, lives: (before?.lives ?? 0) + 1 });
    }
  }
  const [most] = [...seen.values()].sort((a, b) => b.lives - a.lives);
  if (most === undefined || most.lives < LEAST_LIVES) {
    return null;
  }
  const { line, path } = most.holder;
  return { line, path, lives: most.lives, of: ended.length, lifeMs };
}
