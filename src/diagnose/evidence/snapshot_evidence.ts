/** Only allocator snapshots as evidence; no process was watched. */
import type { GpuJson } from "../../model/documents/gpu/gpu_document.js";
import type { Evidence } from "./evidence.js";

export function evidenceOfSnapshots(snapshots: readonly GpuJson[]): Evidence {
  const command = snapshots.map(({ file }) => file);
  return {
    target: { pid: 0, command, python: "", startedMs: 0 },
    window: { startMs: 0, endMs: 0 },
    processes: [
      {
        pid: 0,
        parentPid: 0,
        command,
        python: "",
        profiled: false,
        startedMs: 0,
        endedMs: null,
        series: { pid: 0, timesMs: new Float64Array(0), values: new Map() },
      },
    ],
    events: [],
    snapshots,
    limits: snapshots.flatMap(({ limits }) => limits),
  };
}
