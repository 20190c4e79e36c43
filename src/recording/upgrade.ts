import { FORMAT_VERSION, FrameKind } from "./frames/frames.js";

/** Turns a frame's batch as format `version` had it into what `version + 1` has; undefined leaves the frame out. */
type Upgrader = (kind: FrameKind, batch: unknown) => unknown;

/** `UPGRADERS.get(n)` leads from n to n + 1; without one the frames of n are as those of n + 1 (a kind of
 * frame was added). */
const UPGRADERS: ReadonlyMap<number, Upgrader> = new Map([
  [3, withMakers],
  [4, withPutters],
]);

/** 4: rows of holders tell which stack makes handles. */
function withMakers(kind: FrameKind, batch: unknown): unknown {
  return kind === FrameKind.holders ? withInRows(batch, { madeAt: null }) : batch;
}

/** 5: they tell who puts things into the holder. */
function withPutters(kind: FrameKind, batch: unknown): unknown {
  return kind === FrameKind.holders ? withInRows(batch, { putters: [] }) : batch;
}

function withInRows(batch: unknown, fields: object): unknown {
  const rows = (batch as { readonly rows?: unknown } | null)?.rows;
  return Array.isArray(rows)
    ? { ...(batch as object), rows: rows.map((row: object) => ({ ...row, ...fields })) }
    : batch;
}

/** A batch of any older version in the newest form. */
export function upgrade(version: number, kind: FrameKind, batch: unknown): unknown {
  let current = batch;
  for (let step = version; step < FORMAT_VERSION && current !== undefined; step++) {
    const upgrader = UPGRADERS.get(step);
    current = upgrader ? upgrader(kind, current) : current;
  }
  return current;
}
