/** The censuses of a recording as evidence: one series of bytes and objects per type. */
import type { Pid } from "../../model/base/units.js";
import type { RecordedCensus } from "../../recording/types.js";
import type { CensusEvidence } from "./evidence.js";

/** The process with the most censuses; null if the recording has none. */
export function censusEvidence(censuses: readonly RecordedCensus[]): CensusEvidence | null {
  const byPid = new Map<Pid, RecordedCensus[]>();
  for (const census of censuses) {
    byPid.set(census.pid, [...(byPid.get(census.pid) ?? []), census]);
  }
  const [most] = [...byPid.values()].sort((a, b) => b.length - a.length);
  if (most === undefined) {
    return null;
  }
  const names = new Set(most.flatMap(({ types }) => types));
  const rows = most.map(({ types }) => new Map(types.map((type, row) => [type, row])));
  const course = (type: string, column: "bytes" | "objects") =>
    most.map((census, n) => census[column][rows[n]?.get(type) ?? -1] ?? 0);
  return {
    pid: (most[0] as RecordedCensus).pid,
    timesMs: most.map(({ timeMs }) => timeMs),
    types: [...names].map((type) => ({
      type,
      bytes: course(type, "bytes"),
      objects: course(type, "objects"),
    })),
  };
}
