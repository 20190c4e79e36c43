/** What the fleet's diagnosis knows about one service. Pure data: from a store, or from a folder of labelled fleets. */
import type { Bytes, TimeMs } from "../../../model/base/units.js";
import type { VerdictKind } from "../../../model/documents/diagnosis_document.js";
import type { FrameJson } from "../../../model/documents/documents.js";
import type { FleetHolderJson } from "../../../model/documents/fleet_diagnosis_document.js";
import type { Readings } from "../../series/readings.js";

export interface ServiceEvidence {
  readonly service: string;
  readonly window: { readonly startMs: TimeMs; readonly endMs: TimeMs };
  readonly processes: readonly FleetProcess[];
}

/** One life of one instance: from a start to its end. */
export interface FleetProcess {
  /** Unique within the service. */
  readonly process: string;
  /** What a restart keeps: a pod of a stateful set, a shard, a rank, a host. */
  readonly instance: string;
  readonly version: string;
  readonly startedMs: TimeMs;
  /** null: it runs. */
  readonly endedMs: TimeMs | null;
  /** 0: none is known. */
  readonly limitBytes: Bytes;
  /** RSS of the program and its child processes. */
  readonly rss: Readings;
  /** Requests a second; null: unknown. */
  readonly requests: Readings | null;
  /** Where the agent ran; otherwise empty. */
  readonly sites: readonly SiteReadings[];
  /** Of the diagnosis of this process alone; null: there is none. */
  readonly kind: VerdictKind | null;
  /** Of the same diagnosis; left out: it did not measure growth. */
  readonly growthBytesPerHour?: number;
  /** What the diagnosis of a process says that ended within a minute, if an agent saw its memory grow; left out otherwise. */
  readonly observed?: string;
  /** The objects that hold the memory of lines, as that diagnosis found them. */
  readonly holders: readonly LineHolder[];
}

export interface LineHolder extends FleetHolderJson {
  readonly line: FrameJson;
  /** The number of items at which it drops old ones; absent: none is known. */
  readonly bound?: number;
}

/** Live bytes of one allocation site. */
export interface SiteReadings {
  /** Leaf first. */
  readonly stack: readonly FrameJson[];
  readonly live: Readings;
}
