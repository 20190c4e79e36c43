/** Evidence about chosen rows of a profile alone: `diagnose --where thread=worker`. */
import type { Evidence } from "./evidence.js";

/**
 * `evidence` holds the sites of the chosen rows; this takes out what is of the whole process, so that no rule explains
 * the growth of RSS by rows that have no part in it: polled figures, objects by type, and holders of other sites.
 */
export function restrictedTo(where: string, evidence: Evidence): Evidence {
  const { census: _, memoryEnds = [], snapshots: __, holders, collectors, ...rest } = evidence;
  const { sites, passing } = evidence.sites ?? { sites: [], passing: [] };
  const keys = new Set([...sites, ...passing].map(({ key }) => key));
  const [whole] = evidence.processes;
  return {
    ...rest,
    ...(collectors === undefined ? {} : { collectors }),
    ...(holders === undefined ? {} : { holders: holders.filter(({ site }) => keys.has(site)) }),
    processes: evidence.processes.map(({ series, ...process }) => ({
      ...process,
      series: { pid: series.pid, timesMs: new Float64Array(), values: new Map() },
    })),
    ...(whole === undefined
      ? {}
      : { selection: { where, whole, members: evidence.processes.length } }),
    limits: [...evidence.limits, ...memoryEnds.map(({ sentence }) => sentence)],
  };
}
