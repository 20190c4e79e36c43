/** Everything that `tidemark gpu` reports about one snapshot. */
import { float64At } from "../../model/base/columns.js";
import type {
  GpuAdviceJson,
  GpuCategory,
  GpuDeviceJson,
  GpuJson,
} from "../../model/documents/gpu/gpu_document.js";
import { type GpuReplay, heldAt } from "../../model/gpu/gpu_replay.js";
import { type GpuSnapshot, HOST_MEMORY } from "../../model/gpu/gpu_snapshot.js";
import { replayForward } from "../replay/forward_replay.js";
import { devicesOf, replayDevice } from "../replay/replay.js";
import { adviceOf, type GpuAdviceId } from "./advice.js";
import { categories } from "./category.js";
import { endOf } from "./fragmentation.js";
import { growthOf } from "./growth.js";
import { sitesOf } from "./sites.js";
import { cacheReleasesOf, outOfMemoryOf } from "./snapshot_oom.js";
import { stepsOf } from "./steps.js";

export function analyse(snapshot: GpuSnapshot, file: string): GpuJson {
  const devices = devicesOf(snapshot).map((device) =>
    analyseDevice(snapshot, replayDevice(snapshot, device)),
  );
  return {
    schema: "tidemark.gpu/1",
    file,
    devices,
    advice: adviceFor(snapshot, devices),
    limits: limitsOf(snapshot, devices),
  };
}

export function analyseDevice(snapshot: GpuSnapshot, replay: GpuReplay): GpuDeviceJson {
  const end = endOf(snapshot, replay.device);
  const categoryOf = categories(snapshot, replay);
  const highest = highestOf(replay.requested);
  // Among equal moments, use the end, where the snapshot itself has all details.
  const atEnd = replay.requested[highest] === replay.requested[replay.events];
  const peak = atEnd ? replay.events : highest;
  const steps = stepsOf(snapshot, replay);
  const forward = replayForward(snapshot, replay);
  const disagreements = [...replay.disagreements, ...(forward?.disagreements ?? [])];
  return {
    device: replay.device,
    segments: end.segments,
    events: replay.events,
    complete: replay.complete,
    end: end.totals,
    peak: {
      requestedBytes: float64At(replay.requested, peak),
      reservedBytes: float64At(replay.reserved, peak),
      eventIndex: peak,
      timeUs: peak === 0 ? 0 : float64At(snapshot.events.timeUs, replay.firstEvent + peak - 1),
      sites: sitesOf(snapshot, replay, heldAt(replay, peak), categoryOf),
    },
    timeline: timelineOf(replay),
    highestReservedBytes: float64At(replay.reserved, highestOf(replay.reserved)),
    waste: end.waste,
    largestFreeBytes: end.largestFreeBytes,
    fragmentation: end.fragmentation,
    outOfMemory: outOfMemoryOf(snapshot, replay),
    cacheReleases: cacheReleasesOf(snapshot, replay),
    sites: sitesOf(snapshot, replay, heldAt(replay, replay.events), categoryOf),
    stepsFrom: steps.from,
    growth: growthOf(snapshot, replay, steps, categoryOf),
    disagreements: {
      count: replay.disagreementCount + (forward?.disagreements.length ?? 0),
      first: disagreements.slice(0, 10).map(({ event, address, detail }) => ({
        eventIndex: event,
        address: `0x${address.toString(16)}`,
        detail,
      })),
    },
  };
}

/** The first moment of the highest value. */
function highestOf(values: Float64Array): number {
  let highest = 0;
  for (let at = 1; at < values.length; at++) {
    if (float64At(values, at) > float64At(values, highest)) {
      highest = at;
    }
  }
  return highest;
}

const TIMELINE_PARTS = 120;

function timelineOf({ requested, reserved, events }: GpuReplay): GpuDeviceJson["timeline"] {
  const parts = Math.min(TIMELINE_PARTS, events + 1);
  return Array.from({ length: parts }, (_, part) => {
    const from = Math.floor((part * (events + 1)) / parts);
    const to = Math.max(from + 1, Math.floor(((part + 1) * (events + 1)) / parts));
    const highest = { eventIndex: from, requestedBytes: 0, reservedBytes: 0 };
    for (let moment = from; moment < to; moment++) {
      highest.requestedBytes = Math.max(highest.requestedBytes, float64At(requested, moment));
      highest.reservedBytes = Math.max(highest.reservedBytes, float64At(reserved, moment));
    }
    return highest;
  });
}

/** Smallest waste that is reported, as a share of reserved memory and in bytes. */
const WORTH_SHARE = 0.1;
const WORTH_BYTES = 64 * 2 ** 20;

export function adviceFor(
  snapshot: GpuSnapshot,
  devices: readonly GpuDeviceJson[],
): GpuAdviceJson[] {
  const expandable = snapshot.settings.expandable_segments === true;
  const ids = devices.flatMap((device) => adviceForDevice(device, expandable));
  return adviceOf(ids);
}

function adviceForDevice(device: GpuDeviceJson, expandable: boolean): GpuAdviceId[] {
  if (device.device === HOST_MEMORY) {
    return device.growth.length > 0 ? ["TM-A106"] : [];
  }
  const { end, waste, peak } = device;
  const ids: GpuAdviceId[] = [];
  const large = (bytes: number) => bytes >= WORTH_BYTES && bytes >= WORTH_SHARE * end.reservedBytes;
  if (device.growth.length > 0) {
    const ofGradients = device.growth.every(({ category }) => category === "gradients");
    ids.push(ofGradients ? "TM-A107" : "TM-A106");
  }
  const fragmented = device.outOfMemory.some(({ kind }) => kind === "fragmentation");
  if (fragmented || large(waste.splitBytes)) {
    ids.push(...(expandable ? (["TM-A103"] as const) : (["TM-A101", "TM-A103"] as const)));
    if (fragmented) {
      ids.push("TM-A102");
    }
  }
  if (device.outOfMemory.some(({ kind }) => kind === "genuine")) {
    ids.push("TM-A115");
  }
  const share = (category: GpuCategory) =>
    peak.sites.reduce((sum, site) => sum + (site.category === category ? site.bytes : 0), 0) /
    Math.max(1, peak.requestedBytes);
  if (share("activations") > 0.4) {
    ids.push("TM-A104");
  }
  if (share("optimizer state") > 0.3) {
    ids.push("TM-A105");
  }
  if (share("kv cache") > 0.3) {
    ids.push("TM-A112");
  }
  if (large(waste.roundingBytes)) {
    ids.push("TM-A110");
  }
  if (large(waste.cachedBytes)) {
    ids.push("TM-A111");
  }
  const privateFree = device.fragmentation
    .filter(({ pool }) => pool !== "" && pool !== "0,0")
    .reduce((sum, { freeBytes }) => sum + freeBytes, 0);
  if (large(privateFree)) {
    ids.push("TM-A114");
  }
  const unseen = peak.sites.reduce(
    (sum, { stack, bytes }) => sum + (stack.length === 0 ? bytes : 0),
    0,
  );
  if (device.events > 0 && unseen > 0.3 * peak.requestedBytes) {
    ids.push("TM-A113");
  }
  return ids;
}

function nameOf(device: number): string {
  return device === HOST_MEMORY ? "pinned host memory" : `device ${device}`;
}

export function limitsOf(snapshot: GpuSnapshot, devices: readonly GpuDeviceJson[]): string[] {
  const limits: string[] = [];
  if (devices.length === 0) {
    limits.push("the snapshot contains no memory and no trace: the program had not used a device");
  }
  for (const { device, events, complete, disagreements } of devices) {
    if (events === 0) {
      limits.push(`${nameOf(device)} has no trace: only the end is known; start recording earlier`);
    } else if (!complete && disagreements.count === 0) {
      limits.push(
        `the trace of ${nameOf(device)} begins with memory already in use: earlier stacks are known only if the block records them`,
      );
    }
    if (disagreements.count > 0) {
      limits.push(
        `${nameOf(device)}: ${disagreements.count} places where trace and segments disagree, the last at event ${disagreements.first[0]?.eventIndex}; earlier moments may be inaccurate`,
      );
    }
  }
  if (snapshot.unknownActions.length > 0) {
    limits.push(`entries of unknown kinds were ignored: ${snapshot.unknownActions.join(", ")}`);
  }
  limits.push(
    "only memory of PyTorch's allocator: the CUDA context, NCCL and other libraries are not in a snapshot",
  );
  return limits;
}
