/** The request and the answer of a holder lookup: the messages between a scheduler and the lookup's thread, which
 * starts here. */

import { Worker } from "node:worker_threads";
import type { Address, Bytes, Millis, Pid, StackId } from "../model/base/units.js";
import type { Metric } from "../model/profile/series.js";
import type { CensusBatch, HolderBatch } from "../recording/types.js";
import type { Opening } from "../segment/index.js";

/** The request to the worker. */
export interface LookupRequest {
  readonly pid: Pid;
  readonly sites: readonly LookupSite[];
  /** What no sample tells of grows: what holds those objects, and which stack makes them? null: it does not. */
  readonly unsampled: UnsampledTraces | null;
  /** CPU time that a further look must not exceed, all looks together; absent: as many looks as it takes. */
  readonly mostMs?: Millis;
}

/** Which objects those are, and what may tell who makes them. */
export interface UnsampledTraces {
  /** Figures of the process. */
  readonly growing: ReadonlySet<Metric>;
  /** Where descriptors grow: those that were opened after the start and a while ago; some may be closed. */
  readonly opened: readonly Opening[];
  /** Where memory of that kind grows: files of libraries with an allocator past malloc. */
  readonly libraries: readonly string[];
  readonly sampled: readonly SampledStack[];
}

export interface LookupSite {
  readonly site: string;
  /** Python's allocator was asked: every block is an object's, or a part of one. */
  readonly python: boolean;
  readonly addresses: readonly Address[];
  /** Set if the site's memory is a few large blocks that are reallocated, larger each time: bounds for the size of the
   * largest block between the look and the copy of the heap; else null. */
  readonly swelling: { readonly least: Bytes; readonly most: Bytes } | null;
}

export interface SampledStack {
  /** Of the recording's dictionary. */
  readonly stack: StackId;
  /** Of its live samples. */
  readonly addresses: readonly Address[];
}

/** What it answers; null where nothing could be looked up, or counted. */
export interface LookupAnswer {
  readonly batch: HolderBatch | null;
  readonly census: CensusBatch | null;
  readonly cpuMs: Millis;
}

/** The thread posts one {@link LookupAnswer} and ends; it fails with an "error" event. */
export function startLookup(request: LookupRequest): Worker {
  const worker = new Worker(new URL("./holder_worker.js", import.meta.url), {
    workerData: request,
  });
  worker.unref();
  return worker;
}
