/** Evidence restricted to selected rows of a profile: `diagnose --where thread=worker`. */
import type { Evidence } from "./evidence.js";
import { treeOf } from "./launcher.js";

/**
 * `evidence` has the sites of the selected rows. This removes everything that concerns the whole process
 * (polled metrics, objects by type, holders of other sites), so that no rule explains RSS growth by unrelated
 * rows.
 */
export function restrictedTo(where: string, evidence: Evidence): Evidence {
  const { census: _, memoryEnds = [], snapshots: __, holders, collectors, ...rest } = evidence;
  const { sites, passing } = evidence.sites ?? { sites: [], passing: [] };
  const keys = new Set([...sites, ...passing].map(({ key }) => key));
  const whole = treeOf(evidence);
  return {
    ...rest,
    ...(collectors === undefined ? {} : { collectors }),
    ...(holders === undefined ? {} : { holders: holders.filter(({ site }) => keys.has(site)) }),
    processes: evidence.processes.map(({ series, ...process }) => ({
      ...process,
      series: { pid: series.pid, timesMs: new Float64Array(), values: new Map() },
    })),
    ...(whole === null ? {} : { selection: { where, whole } }),
    limits: [...evidence.limits, ...memoryEnds.map(({ sentence }) => sentence)],
  };
}
