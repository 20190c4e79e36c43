import { FORMAT_VERSION, type FrameKind } from "./frames.js";

/** Turns a frame's batch as format `version` had it into what `version + 1` has; undefined leaves the frame out. */
export type Upgrader = (kind: FrameKind, batch: unknown) => unknown;

/** `UPGRADERS.get(n)` leads from n to n + 1; without one the frames of n are as those of n + 1 (a kind of
 * frame was added). */
const UPGRADERS: ReadonlyMap<number, Upgrader> = new Map();

/** A batch of any older version in the newest form. */
export function upgrade(version: number, kind: FrameKind, batch: unknown): unknown {
  let current = batch;
  for (let step = version; step < FORMAT_VERSION && current !== undefined; step++) {
    const upgrader = UPGRADERS.get(step);
    current = upgrader ? upgrader(kind, current) : current;
  }
  return current;
}
