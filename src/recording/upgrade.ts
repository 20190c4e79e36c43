import { FORMAT_VERSION, FrameKind } from "./frames/frames.js";

/** Converts a frame's batch from format `version` to `version + 1`; undefined drops the frame. */
type Upgrader = (kind: FrameKind, batch: unknown) => unknown;

/** `UPGRADERS.get(n)` converts from n to n + 1; if there is none, the frames of n are valid in n + 1 (only a kind of
frame was added). */
const UPGRADERS: ReadonlyMap<number, Upgrader> = new Map([
  [3, withMakers],
  [4, withPutters],
]);

/** 4: rows of holders name the stack that opens handles. */
function withMakers(kind: FrameKind, batch: unknown): unknown {
  return kind === FrameKind.holders ? withInRows(batch, { madeAt: null }) : batch;
}

/** 5: they name the functions that add to the holder. */
function withPutters(kind: FrameKind, batch: unknown): unknown {
  return kind === FrameKind.holders ? withInRows(batch, { putters: [] }) : batch;
}

function withInRows(batch: unknown, fields: object): unknown {
  const rows = (batch as { readonly rows?: unknown } | null)?.rows;
  return Array.isArray(rows)
    ? { ...(batch as object), rows: rows.map((row: object) => ({ ...row, ...fields })) }
    : batch;
}

/** Converts a batch of any older version to the current one. */
export function upgrade(version: number, kind: FrameKind, batch: unknown): unknown {
  let current = batch;
  for (let step = version; step < FORMAT_VERSION && current !== undefined; step++) {
    const upgrader = UPGRADERS.get(step);
    current = upgrader ? upgrader(kind, current) : current;
  }
  return current;
}
