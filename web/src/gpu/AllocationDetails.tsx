/** The clicked allocation: size, lifetime, category, stack. */
import {
  float64At,
  int32At,
  uint8At,
  uint16At,
  uint32At,
} from "../../../src/model/base/columns.js";
import {
  GPU_CATEGORIES,
  type GpuPageDevice,
  type GpuPageDocument,
} from "../../../src/model/documents/gpu/gpu_page.js";
import { formatBytes, formatCount, formatMilliseconds } from "../format/numbers.js";
import { nameOf, placeOf, shownFrames } from "./stacks/stackNames.js";

interface Props {
  device: GpuPageDevice;
  tables: GpuPageDocument["tables"];
  row: number;
  onMoment(moment: number): void;
}

export function AllocationDetails({ device, tables, row, onMoment }: Props) {
  if (row < 0) {
    return (
      <p className="gpu-hint">Click an allocation to see what it is and where it comes from.</p>
    );
  }
  const { allocations, events } = device.replay;
  const start = int32At(allocations.start, row);
  const end = int32At(allocations.end, row);
  const frames = [...shownFrames(tables, uint32At(allocations.stack, row))];
  return (
    <div className="gpu-details">
      <dl>
        <dt>Size</dt>
        <dd>
          {formatBytes(float64At(allocations.size, row))}{" "}
          <small>in a block of {formatBytes(float64At(allocations.blockSize, row))}</small>
        </dd>
        <dt>For</dt>
        <dd>{GPU_CATEGORIES[uint8At(device.category, row)]}</dd>
        <dt>Life</dt>
        <dd>
          {start < 0 ? (
            "before the trace"
          ) : (
            <button type="button" className="quiet" onClick={() => onMoment(start + 1)}>
              event {formatCount(start)}
            </button>
          )}{" "}
          to{" "}
          {end === events ? (
            "the end"
          ) : (
            <button type="button" className="quiet" onClick={() => onMoment(end)}>
              event {formatCount(end)}
            </button>
          )}
          {lifeTime(device, start, end)}
        </dd>
        <dt>Address</dt>
        <dd>
          0x{float64At(allocations.address, row).toString(16)}, stream{" "}
          {tables.streams[uint16At(allocations.stream, row)] ?? 0}
        </dd>
      </dl>
      <ol>
        {frames.map((frame, depth) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a frame may occur in a stack more than once
          <li key={depth}>
            <b>{nameOf(tables, frame)}</b> <span>{placeOf(tables, frame)}</span>
          </li>
        ))}
        {frames.length === 0 && <li>no stack was recorded</li>}
      </ol>
    </div>
  );
}

function lifeTime({ timeUs, replay }: GpuPageDevice, start: number, end: number): string {
  const from = timeUs[start];
  const to = timeUs[end];
  if (end === replay.events || from === undefined || to === undefined || from === 0) {
    return "";
  }
  return `, ${formatMilliseconds((to - from) / 1000, 2)}`;
}
