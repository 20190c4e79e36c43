/** The memory of the instances of a service over time, one row each; the number of rows is limited. */
import { oddMemory } from "../../diagnose/index.js";
import type { InstanceRowJson } from "../../model/documents/fleet_document.js";
import type {
  HeatMapAnswer,
  HeatMapName,
  HeatMapRow,
  OddMemory,
} from "../../model/wire/heat_map.js";
import type { Store, Window } from "../../store/index.js";

export interface HeatMapQuery extends Window {
  readonly service: string;
  readonly version?: string;
  readonly name: HeatMapName;
  readonly steps: number;
  /** Most rows. */
  readonly top: number;
}

/** null: no such service. */
export async function heatMap(
  store: Pick<Store, "instances" | "series">,
  { service, version, name, steps, top, ...window }: HeatMapQuery,
): Promise<HeatMapAnswer | null> {
  const all = await store.instances(service, window);
  if (all === null) {
    return null;
  }
  const sizeOf = ({ peakRssBytes, liveBytes = 0 }: InstanceRowJson) =>
    name === "rssBytes" ? peakRssBytes : liveBytes;
  const instances = all
    .filter((row) => version === undefined || row.version === version)
    .filter((row) => name === "liveBytes" || row.source === undefined)
    .sort((a, b) => sizeOf(b) - sizeOf(a) || (a.stream < b.stream ? -1 : 1));
  const shown = instances.slice(0, top);
  const stepMs = Math.max(1, Math.ceil((window.endMs - window.startMs) / steps));
  const { groups } = await store.series({
    ...{ ...window, service, name, by: "instance", stepMs },
    streams: shown.map(({ stream }) => stream),
  });
  const values = new Map(groups.map((each) => [each.group, each.values.map(rounded)]));
  const none = Array.from(
    { length: Math.ceil((window.endMs - window.startMs) / stepMs) },
    () => null,
  );
  const rows = shown.map((row) => rowOf(row, values.get(row.stream) ?? none));
  return {
    ...{ service, name, startMs: window.startMs, stepMs },
    instances: marked(rows),
    otherInstances: instances.length - shown.length,
  };
}

function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value);
}

function rowOf(
  { stream, version, host, pod, startedMs, endedMs, limitBytes }: InstanceRowJson,
  values: HeatMapRow["values"],
): HeatMapRow {
  return {
    ...{ stream, version, host, pod, startedMs },
    ...(endedMs === undefined ? {} : { endedMs }),
    ...{ limitBytes, values },
  };
}

/** Siblings are instances of the same version. */
function marked(rows: readonly HeatMapRow[]): HeatMapRow[] {
  const odd = new Map<HeatMapRow, OddMemory>();
  for (const version of new Set(rows.map((row) => row.version))) {
    const siblings = rows.filter((row) => row.version === version);
    for (const { index, differenceBytes, ...found } of oddMemory(
      siblings.map(({ values }) => values),
    )) {
      odd.set(siblings[index] as HeatMapRow, {
        ...{ differenceBytes: Math.round(differenceBytes), ...found },
      });
    }
  }
  return rows.map((row) => {
    const found = odd.get(row);
    return found === undefined ? row : { ...row, odd: found };
  });
}
