/** The figures of a device at the end of its trace. */
import type { GpuDeviceJson } from "../../../src/model/documents/gpu/gpu_document.js";
import { formatBytes } from "../format/numbers.js";

export function GpuFigures({ summary }: { summary: GpuDeviceJson }) {
  const { end, peak, waste } = summary;
  return (
    <section className="gpu-figures">
      <Figure
        name="Reserved"
        bytes={end.reservedBytes}
        note={`highest ${formatBytes(summary.highestReservedBytes)}`}
      />
      <Figure name="Allocated" bytes={end.allocatedBytes} note="at the end" />
      <Figure
        name="Requested"
        bytes={end.requestedBytes}
        note={`peak ${formatBytes(peak.requestedBytes)}`}
      />
      <Figure
        name="Rounding"
        bytes={waste.roundingBytes}
        note="block size above the requested size"
      />
      <Figure name="Split" bytes={waste.splitBytes} note="free, between blocks in use" />
      <Figure name="Cached" bytes={waste.cachedBytes} note="free, whole segments" />
    </section>
  );
}

function Figure({ name, bytes, note }: { name: string; bytes: number; note: string }) {
  return (
    <div>
      <span>{name}</span>
      <b>{formatBytes(bytes)}</b>
      <small>{note}</small>
    </div>
  );
}
