/** Compares a message of a log with the snapshot taken at that time. */

import { formatBytesLikePyTorch } from "../../model/base/numbers.js";
import type { GpuJson, OomEventJson } from "../../model/documents/gpu/gpu_document.js";

/** Error of a value printed with two decimals. */
const ROUNDING = 0.01;

/** One sentence: the matching event of the snapshot, and whether the figures agree. */
export function checkAgainst(event: OomEventJson, snapshot: GpuJson): string {
  const device = snapshot.devices.find(
    (one) => event.device === null || one.device === event.device,
  );
  if (device === undefined) {
    return `the snapshot has no device ${event.device}`;
  }
  const request = event.requestedBytes;
  const found = device.outOfMemory.find(
    ({ requestedBytes }) =>
      request !== null && Math.abs(requestedBytes - request) <= Math.max(1, ROUNDING * request),
  );
  if (found === undefined) {
    const { allocatedBytes } = device.end;
    const close =
      event.allocatedBytes !== null &&
      Math.abs(allocatedBytes - event.allocatedBytes) <= ROUNDING * Math.max(1, allocatedBytes);
    return close
      ? `its trace has no such event, but its end matches: ${formatBytesLikePyTorch(allocatedBytes)} allocated`
      : `its trace has no such event; the snapshot is from another moment (${formatBytesLikePyTorch(allocatedBytes)} allocated at its end)`;
  }
  const same = found.kind === event.kind;
  return `event ${found.eventIndex} of device ${device.device}: ${
    same ? `${found.kind} there too` : `${found.kind} by the snapshot, which knows every block`
  }, at most ${formatBytesLikePyTorch(found.freeInSegmentsBytes)} free in segments, the largest piece ${formatBytesLikePyTorch(found.largestFreeBytes)}`;
}
