/** The columns of a snapshot whose pickle was read to its end. */
import { float64At, uint32At } from "../../model/base/columns.js";
import { notASnapshot } from "../../model/errors/errors.js";
import { type GpuSnapshot, HOST_MEMORY } from "../../model/gpu/gpu_snapshot.js";
import type { PickleMachine } from "../pickle/pickle_machine.js";
import { Kind } from "../pickle/token.js";
import { rowInPiece } from "./piece_table.js";
import type { RowRange } from "./row_lists.js";
import type { Parts } from "./snapshot_parts.js";
import type { SnapshotShapes } from "./snapshot_shapes.js";

export function finishSnapshot(machine: PickleMachine, shapes: SnapshotShapes): GpuSnapshot {
  const parts = partsOf(machine, shapes);
  const { rows, stacks, strings } = shapes;
  const { first, count } = allSegments(machine, shapes, parts);
  const segments = rows.segments.slice(first, count);
  const blocks = rows.blocks.take();
  placeBlocks(segments, blocks);
  return {
    strings: strings.texts(),
    frames: stacks.frames(),
    stacks: stacks.stacks(),
    streams: Float64Array.from(shapes.streams.keys()),
    events: rows.events.take(),
    traces: parts.traces.map(({ first, count }) => ({ first, count })),
    hostTrace: { first: parts.hostTrace.first, count: parts.hostTrace.count },
    segments,
    blocks,
    annotations: rows.annotations.slice(parts.annotations.first, parts.annotations.count),
    settings: settingsOf(parts.settings === 0 ? "{}" : strings.text(parts.settings)),
    unknownActions: [...shapes.unknownActions],
  };
}

/** The outermost dictionary, or the list of segments that torch.cuda.memory_snapshot() gives. */
function partsOf(machine: PickleMachine, shapes: SnapshotShapes): Parts {
  const { kind, value } = machine.finish();
  const segments = kind === Kind.rows ? shapes.lists.rangeOf(kind, value, Kind.segment) : undefined;
  const parts = kind === Kind.snapshot ? shapes.parts : undefined;
  if (parts !== undefined) {
    return parts;
  }
  if (segments === undefined) {
    throw notASnapshot(machine.path, "its pickle contains no segments");
  }
  const none = (kind: number) => ({ kind, first: 0, count: 0 });
  return {
    segments,
    traces: [],
    hostSegments: none(Kind.segment),
    hostTrace: none(Kind.event),
    annotations: none(Kind.annotation),
    settings: 0,
  };
}

/** The segments of devices and of the host as one range, those of the host marked. */
function allSegments(machine: PickleMachine, { rows }: SnapshotShapes, parts: Parts): RowRange {
  const { segments, hostSegments: host } = parts;
  for (let row = host.first; row < host.first + host.count; row++) {
    rows.segments.pieceOf(row).device[rowInPiece(row)] = HOST_MEMORY;
  }
  if (segments.count === 0 || host.count === 0) {
    return segments.count === 0 ? host : segments;
  }
  const [before, after] = segments.first < host.first ? [segments, host] : [host, segments];
  if (before.first + before.count !== after.first) {
    throw machine.damaged("the segments of devices and of the host overlap");
  }
  return { ...before, count: before.count + after.count };
}

/** Up to torch 2.0 blocks have no address; the blocks of a segment follow one another. */
function placeBlocks(
  segments: {
    length: number;
    address: Float64Array;
    firstBlock: Uint32Array;
    blockCount: Uint32Array;
  },
  blocks: { address: Float64Array; size: Float64Array },
): void {
  for (let segment = 0; segment < segments.length; segment++) {
    const first = uint32At(segments.firstBlock, segment);
    let address = float64At(segments.address, segment);
    for (let block = first; block < first + uint32At(segments.blockCount, segment); block++) {
      if (Number.isNaN(float64At(blocks.address, block))) {
        blocks.address[block] = address;
      }
      address = float64At(blocks.address, block) + float64At(blocks.size, block);
    }
  }
}

function settingsOf(json: string): Record<string, unknown> {
  const settings: unknown = JSON.parse(json);
  return settings !== null && typeof settings === "object" && !Array.isArray(settings)
    ? (settings as Record<string, unknown>)
    : {};
}
