/** The allocation sites that explain the growth, from the instances where the agent ran. */
import type { FrameJson } from "../../../model/documents/documents.js";
import type {
  FleetHolderJson,
  FleetSuspectJson,
} from "../../../model/documents/fleet_diagnosis_document.js";
import { ownFrame } from "../../../model/documents/own_code.js";
import { ageCurve } from "../curves/age_curve.js";
import type { FleetProcess, SiteReadings } from "../curves/fleet_evidence.js";
import { lastingGrowth } from "../curves/lasting_growth.js";
import { type GroupGrowth, WINDOWS_MS } from "./group_growth.js";

const HOUR_MS = 3_600_000;
const MOST_SUSPECTS = 5;
/** Of the growth of RSS; less explains too little. */
const LEAST_SHARE = 0.1;

interface Window {
  readonly startMs: number;
  readonly endMs: number;
}

/** `rate`: growth of RSS of these processes, bytes per ms. The fastest growing first, after a line that no earlier version had. */
export function fleetSuspects(
  processes: readonly FleetProcess[],
  { rate, newLine, shownBy }: Pick<GroupGrowth, "rate" | "newLine" | "shownBy">,
  { endMs, z }: { readonly endMs: number; readonly z: number },
): FleetSuspectJson[] {
  const longest = { startMs: endMs - (WINDOWS_MS[0] as number), endMs };
  const grown = linesOf(processes).flatMap(({ line, rows }) => {
    const curve = ageCurve(
      rows.map(([process, site]) => ({ process, rss: site.live, work: null })),
      windowOf(rows, longest),
    );
    const isNew = newLine !== undefined && keyOf(line) === keyOf(newLine.line);
    const growth = isNew ? newLine : curve === null ? null : lastingGrowth(curve, z);
    if (growth === null || growth.rate < LEAST_SHARE * rate) {
      return [];
    }
    const last = rows.map(([, { live }]) => live.values.at(-1) ?? 0);
    return [
      {
        line,
        stack: [...(rows[0]?.[1].stack ?? [])],
        liveBytes: last.reduce((sum, bytes) => sum + bytes, 0) / Math.max(1, last.length),
        growth,
      },
    ];
  });
  const shown = shownBy && keyOf(shownBy);
  // What certainly grows comes before what may be a filling cache.
  const isSure = ({ growth, line }: { growth: { low: number }; line: FrameJson }) =>
    keyOf(line) === shown ? 2 : Number(growth.low > 0) + Number(growth === newLine);
  grown.sort((a, b) => isSure(b) - isSure(a) || b.growth.rate - a.growth.rate);
  return grown.slice(0, MOST_SUSPECTS).map(({ line, stack, liveBytes, growth }, at) => ({
    ...holderOf(processes, line),
    rank: at + 1,
    share: Math.min(1, growth.rate / rate),
    liveBytes,
    growthBytesPerHour: growth.rate * HOUR_MS,
    low: growth.low * HOUR_MS,
    high: growth.high * HOUR_MS,
    stack,
    line,
  }));
}

/** Where the agent came late in each life, the time since then: otherwise an hour of it would be one point of a week. */
function windowOf(rows: LineOfSites["rows"], { startMs, endMs }: Window): Window {
  const since = Math.min(...rows.map(([, { live }]) => live.times[0] ?? endMs));
  const isLate = rows.every(
    ([{ startedMs }, { live }]) => (live.times[0] ?? endMs) > (startedMs + endMs) / 2,
  );
  return { startMs: isLate ? Math.max(startMs, since) : startMs, endMs };
}

interface LineOfSites {
  readonly line: FrameJson;
  readonly rows: (readonly [FleetProcess, SiteReadings])[];
}

/** The sites of processes by their own line of code. */
export function linesOf(processes: readonly FleetProcess[]): LineOfSites[] {
  const lines = new Map<string, LineOfSites>();
  for (const process of processes) {
    for (const site of process.sites) {
      const line = ownFrame(site.stack) ?? site.stack[0];
      if (line !== undefined) {
        const key = keyOf(line);
        const known = lines.get(key) ?? { line, rows: [] };
        known.rows.push([process, site]);
        lines.set(key, known);
      }
    }
  }
  return [...lines.values()];
}

function keyOf({ file, line, function: name }: FrameJson): string {
  return `${file}\n${line}\n${name}`;
}

/** What the diagnosis of most of the processes names for this line. */
function holderOf(
  processes: readonly FleetProcess[],
  line: FrameJson,
): { holder?: FleetHolderJson } {
  const counts = new Map<string, { holder: FleetHolderJson; count: number }>();
  for (const { line: held, path, type } of processes.flatMap(({ holders }) => holders)) {
    if (held.file === line.file && held.function === line.function) {
      const key = [type, ...path].join("\n");
      const known = counts.get(key) ?? { holder: { path: [...path], type }, count: 0 };
      known.count += 1;
      counts.set(key, known);
    }
  }
  const [most] = [...counts.values()].sort((a, b) => b.count - a.count);
  return most === undefined ? {} : { holder: most.holder };
}
