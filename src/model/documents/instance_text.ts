/** Words about instances and services that the terminal and the pages share. */
import { formatDurationBriefly } from "../base/numbers.js";
import type { TimeMs } from "../base/units.js";
import type { FleetLeakJson } from "./fleet_diagnosis_document.js";
import type { FleetVerdictJson, InstanceRowJson, ServiceRowJson } from "./fleet_document.js";

/** "runs", "silent for 12 min", "ended 3.0 h ago" or "continued as 3f2a81c4". */
export function instanceStateText(
  row: Pick<InstanceRowJson, "state" | "endedMs" | "lastSeenMs" | "continuedAs">,
  nowMs: TimeMs,
): string {
  switch (row.state) {
    case "running":
      return "runs";
    case "continued":
      return `continued as ${row.continuedAs?.slice(0, 8)}`;
    default:
      return restText(row.state, row.endedMs ?? row.lastSeenMs, nowMs);
  }
}

/** Of a service of which no instance runs; "" if one does. */
export function serviceStateText(
  { state, lastSeenMs }: Pick<ServiceRowJson, "state" | "lastSeenMs">,
  nowMs: TimeMs,
): string {
  return state === "running" ? "" : restText(state, lastSeenMs, nowMs);
}

/** "3 ended, 1 silent" */
export function restCountsText({
  endedInstances,
  silentInstances,
}: Pick<ServiceRowJson, "endedInstances" | "silentInstances">): string {
  const silent = silentInstances === 0 ? "" : `, ${silentInstances} silent`;
  return `${endedInstances} ended${silent}`;
}

/**
 * "The fastest growing instance, 3f2a81c4: Python objects accumulate ...": the verdict of a service is that of one of its
 * instances. `among`: instances that run.
 */
export function serviceVerdictText({ summary, stream }: FleetVerdictJson, among: number): string {
  return among > 1 && stream !== undefined
    ? `The fastest growing instance, ${stream.slice(0, 8)}: ${summary}`
    : summary;
}

/** "4 of 5", the instances of a version that leak; "none runs" if all have ended. */
export function affectedText({
  affectedInstances,
  runningInstances,
}: Pick<FleetLeakJson, "affectedInstances" | "runningInstances">): string {
  return runningInstances === 0 ? "none runs" : `${affectedInstances} of ${runningInstances}`;
}

function restText(state: "silent" | "ended", sinceMs: TimeMs, nowMs: TimeMs): string {
  const time = formatDurationBriefly(Math.max(0, nowMs - sinceMs));
  return state === "silent" ? `silent for ${time}` : `ended ${time} ago`;
}
