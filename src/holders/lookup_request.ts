/** The messages between a scheduler and the holder lookup's thread, which is started here. */

import { Worker } from "node:worker_threads";
import type { Address, Bytes, Millis, Objects, Pid, StackId } from "../model/base/units.js";
import type { Metric } from "../model/profile/series.js";
import type { CensusBatch, HolderBatch } from "../recording/types.js";
import type { Opening } from "../segment/index.js";

/** The request to the worker. */
export interface LookupRequest {
  readonly pid: Pid;
  readonly sites: readonly LookupSite[];
  /**
   * Asks for the holder and creating stack of growing objects that samples do not show; null if no such objects grow.
   */
  readonly unsampled: UnsampledTraces | null;
  /** CPU time for all lookups together, which another lookup must not exceed; absent: no limit. */
  readonly mostMs?: Millis;
}

/** These objects, and evidence for who creates them. */
export interface UnsampledTraces {
  /** Metrics of the process. */
  readonly growing: ReadonlySet<Metric>;
  /** If descriptors grow: those opened after the start and some time ago; some may be closed. */
  readonly opened: readonly Opening[];
  /** If such memory grows: files of libraries with their own allocator. */
  readonly libraries: readonly string[];
  readonly sampled: readonly SampledStack[];
}

export interface LookupSite {
  readonly site: string;
  /** The memory is from Python's allocator, so every block is an object or part of one. */
  readonly python: boolean;
  /** The oldest allocation first. */
  readonly addresses: readonly Address[];
  /**
   * Set if the site's memory is a few large blocks that are reallocated at growing sizes: bounds for the size
   * of the largest block between the snapshot and the copy of the heap; otherwise null.
   */
  readonly swelling: { readonly least: Bytes; readonly most: Bytes } | null;
}

export interface SampledStack {
  /** Id in the recording's dictionary. */
  readonly stack: StackId;
  /** Addresses of its live samples. */
  readonly addresses: readonly Address[];
}

/** The answer; null if nothing could be looked up or counted. */
export interface LookupAnswer {
  readonly batch: HolderBatch | null;
  readonly census: CensusBatch | null;
  readonly cpuMs: Millis;
  readonly objects: Objects;
  /** Why the heap is too large to be looked up; null: it is not. */
  readonly refusal: string | null;
}

/** The thread posts one {@link LookupAnswer} and ends; it fails with an "error" event. */
export function startLookup(request: LookupRequest): Worker {
  const worker = new Worker(new URL("./holder_worker.js", import.meta.url), {
    workerData: request,
  });
  worker.unref();
  return worker;
}
