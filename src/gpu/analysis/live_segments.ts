/** Analyses the segments that a running program lists, like those of a snapshot. */
import { BlockState } from "../../model/gpu/gpu_snapshot.js";
import type { LiveSegment } from "../devices/device_figures.js";
import { type EndOfDevice, endOf, type SegmentView } from "./fragmentation.js";

const STATES = {
  inactive: BlockState.inactive,
  allocated: BlockState.allocated,
  pending: BlockState.pendingFree,
} as const;

/** Totals, waste and fragmentation of one device. */
export function endOfLive(segments: readonly LiveSegment[], device: number): EndOfDevice {
  const strings = new Map<string, number>();
  const streams = new Map<number, number>();
  const rowOf = <Key>(rows: Map<Key, number>, key: Key) => {
    const row = rows.get(key) ?? rows.size;
    rows.set(key, row);
    return row;
  };
  const blocks = segments.flatMap((segment) => segment.blocks);
  let first = 0;
  const firstBlock = Uint32Array.from(segments, ({ blocks: own }) => {
    first += own.length;
    return first - own.length;
  });
  const view: SegmentView = {
    segments: {
      length: segments.length,
      device: Int32Array.from(segments, (segment) => segment.device),
      size: Float64Array.from(segments, ({ bytes }) => bytes),
      stream: Uint16Array.from(segments, ({ stream }) => rowOf(streams, stream)),
      pool: Uint32Array.from(segments, ({ pool }) => rowOf(strings, pool)),
      type: Uint32Array.from(segments, ({ type }) => rowOf(strings, type)),
      expandable: Uint8Array.from(segments, ({ expandable }) => (expandable ? 1 : 0)),
      firstBlock,
      blockCount: Uint32Array.from(segments, ({ blocks: own }) => own.length),
    },
    blocks: {
      size: Float64Array.from(blocks, ({ bytes }) => bytes),
      requested: Float64Array.from(blocks, ({ requestedBytes }) => requestedBytes),
      state: Uint8Array.from(blocks, ({ state }) => STATES[state]),
    },
    strings: [...strings.keys()],
    streams: Float64Array.from(streams.keys()),
  };
  return endOf(view, device);
}
