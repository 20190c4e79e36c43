/**
 * Replays the trace forwards from an empty allocator. The result must equal the snapshot's segments. This works
 * only for a trace without losses.
 */

import { float64At, uint8At } from "../../model/base/columns.js";
import type { Address, Bytes } from "../../model/base/units.js";
import type { Disagreement, GpuReplay } from "../../model/gpu/gpu_replay.js";
import { GpuAction, type GpuSnapshot } from "../../model/gpu/gpu_snapshot.js";
import { AddressMap } from "./address_map.js";

interface ForwardEnd {
  readonly requested: Bytes;
  readonly reserved: Bytes;
  /** Differences between the replayed trace and the segments. */
  readonly disagreements: readonly Disagreement[];
}

/** null if the trace does not begin with an empty allocator. */
export function replayForward({ events }: GpuSnapshot, replay: GpuReplay): ForwardEnd | null {
  if (!replay.complete) {
    return null;
  }
  const live = new AddressMap();
  let requested = 0;
  let reserved = 0;
  for (let event = 0; event < replay.events; event++) {
    const row = replay.firstEvent + event;
    const address = float64At(events.address, row);
    const size = float64At(events.size, row);
    switch (uint8At(events.action, row)) {
      case GpuAction.alloc:
        live.set(address, size);
        requested += size;
        break;
      case GpuAction.freeCompleted:
        requested -= freed(live, address);
        break;
      case GpuAction.segmentAlloc:
      case GpuAction.segmentMap:
        reserved += size;
        break;
      case GpuAction.segmentFree:
      case GpuAction.segmentUnmap:
        reserved -= size;
        break;
    }
  }
  return { requested, reserved, disagreements: compareEnd(replay, live) };
}

/** The bytes of an allocation that ends; 0 if there is none. */
function freed(live: AddressMap, address: Address): Bytes {
  const slot = live.find(address);
  if (slot < 0) {
    return 0;
  }
  const bytes = live.at(slot);
  live.remove(slot);
  return bytes;
}

function compareEnd({ allocations, events }: GpuReplay, live: AddressMap): Disagreement[] {
  const found: Disagreement[] = [];
  for (let row = 0; row < allocations.length; row++) {
    if (allocations.end[row] !== events) {
      continue;
    }
    const address = float64At(allocations.address, row);
    const slot = live.find(address);
    if (slot < 0 || live.at(slot) !== allocations.size[row]) {
      found.push({
        event: events,
        address,
        detail: "in a segment, but not according to the trace",
      });
    }
    if (slot >= 0) {
      live.remove(slot);
    }
  }
  for (const address of live.addresses()) {
    found.push({ event: events, address, detail: "allocated by the trace, but in no segment" });
  }
  return found;
}
