/**
 * What the diagnoses of single processes say while the fleet's verdict is open. A process is judged within minutes, a service
 * within hours: until then, the answer about the service names what is known about its processes.
 */
import type { TimeMs } from "../../model/base/units.js";
import { callsForAction, type VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { FleetOwnVerdictJson } from "../../model/documents/fleet_diagnosis_document.js";
import type { FleetProcess } from "./curves/fleet_evidence.js";

/** Of the processes that run: the kind that most of them have, of those that call for something. null: none has one. */
export function ownVerdict(
  processes: readonly FleetProcess[],
  endMs: TimeMs,
): FleetOwnVerdictJson | null {
  const running = processes.filter((process) => (process.endedMs ?? endMs) >= endMs);
  const kind = commonKind(running);
  if (kind === null) {
    return null;
  }
  const alike = running.filter((process) => process.kind === kind);
  const growth = alike.reduce((sum, each) => sum + (each.growthBytesPerHour ?? 0), 0);
  return { kind, instances: alike.length, running: running.length, growthBytesPerHour: growth };
}

/** The kind that the processes' own diagnoses name most often, without the calm ones; null: they name none. */
export function commonKind(processes: readonly FleetProcess[]): VerdictKind | null {
  const counts = new Map<VerdictKind, number>();
  for (const { kind } of processes) {
    if (kind !== null && callsForAction(kind)) {
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
  }
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}
