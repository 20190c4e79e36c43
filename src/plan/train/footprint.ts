/**
 * What one job takes on devices of one kind. Tensors, and what the allocator reserves without a limit, do not depend on
 * the memory of the device: searches for what fits share them.
 */
import type { Bytes } from "../../model/base/units.js";
import type { PlanPartJson } from "../../model/documents/plan_document.js";
import { figureOf } from "../device/allocator.js";
import { loadsWide } from "../job/loading.js";
import type { TrainOptions } from "../job/options.js";
import type { ModelShape } from "../shape/model_shape.js";
import type { DevicePeak } from "./device_peak.js";
import { allParts, tensorParts } from "./parts.js";
import { type KnownStates, trainingPeak, workspacesOf } from "./plan_training.js";
import { type Replay, replayed, roomOf } from "./replay.js";

interface Footprint {
  readonly parts: readonly PlanPartJson[];
  /** Without the libraries' workspaces, whose size differs between devices. */
  readonly tensorBytes: Bytes;
  readonly ncclBytes: Bytes;
  /** Without a limit; absent until a plan has found it. */
  free: Replay | undefined;
}

/** Footprints by what a search changes, and states by what the device changes: these depend on neither batch nor length. */
export class KnownFootprints extends Map<string, Footprint> {
  readonly states = new Map<string, KnownStates>();
}

/** Plans of one model and request that differ in batch, length and device. */
export class Footprints {
  /** The step of the latest job: it is too large to keep for all. */
  #latest: { readonly key: string; readonly peak: DevicePeak } | null = null;

  constructor(
    readonly model: ModelShape,
    readonly known: KnownFootprints,
  ) {}

  /** Of tensors alone. */
  allocatedBytes(job: TrainOptions): Bytes {
    return this.#of(job).tensorBytes + workspacesOf(job.gpu);
  }

  /** The same figure as that of the job's plan if the job fits; else at least more than the device has. */
  deviceBytes(job: TrainOptions): Bytes {
    const footprint = this.#of(job);
    const { parts, ncclBytes, tensorBytes } = footprint;
    const allocatedBytes = tensorBytes + workspacesOf(job.gpu);
    const { free } = footprint;
    const room = roomOf(job.gpu, ncclBytes);
    const isKnown = free !== undefined && (allocatedBytes >= room || free.reservedBytes <= room);
    const found = isKnown
      ? free
      : replayed({ ...this.#peakOf(job), allocatedBytes }, job.gpu, true);
    footprint.free = found.isFree ? found : free;
    return figureOf(allParts(parts, job, { ncclBytes, gaps: found.gaps }), "device").bytes;
  }

  #of(job: TrainOptions): Footprint {
    const key = keyOf(this.model, job);
    const found = this.known.get(key);
    if (found !== undefined) {
      return found;
    }
    const peak = this.#peakOf(job);
    const { allocatedBytes, ncclBytes } = peak;
    const tensorBytes = allocatedBytes - workspacesOf(job.gpu);
    const made = {
      parts: tensorParts(peak, job, this.model),
      tensorBytes,
      ncclBytes,
      free: undefined,
    };
    this.known.set(key, made);
    return made;
  }

  #peakOf(job: TrainOptions): DevicePeak {
    const key = keyOf(this.model, job);
    if (this.#latest?.key === key) {
      return this.#latest.peak;
    }
    const loaded = `${job.dtype} ${loadsWide(this.model, job) !== null}`;
    const states = this.known.states.get(loaded) ?? new Map();
    this.known.states.set(loaded, states);
    const peak = trainingPeak(this.model, job, states);
    this.#latest = { key, peak };
    return peak;
  }
}

/** What the tensors of a job depend on, of all that a search changes. */
function keyOf(model: ModelShape, job: TrainOptions): string {
  const { batch, sequence, gpu } = job;
  return `${batch} ${sequence} ${gpu.old} ${loadsWide(model, job) !== null}`;
}
