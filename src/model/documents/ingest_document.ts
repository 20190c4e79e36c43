/** What a server receives and stores, for its page and API: `tidemark.ingest/1`. */
import type { Bytes, Millis, TimeMs } from "../base/units.js";

/** One sender: a recording that is sent while it grows, or the profiles of another profiler with one set of labels. */
export interface IngestStreamJson {
  stream: string;
  /** "": its first frames are not in the database yet; also `version` and `host`. */
  service: string;
  version: string;
  host: string;
  /** "tidemark", or the name of the other profiler. */
  source: string;
  bytes: Bytes;
  lastMs: TimeMs;
  /** Over the last five minutes. */
  bytesPerMinute: number;
  /** Refused requests since the server's start. */
  refused: number;
  /** Why the last one was refused. */
  lastError?: string;
}

export interface IngestJson {
  schema: "tidemark.ingest/1";
  /** Those that sent last come first. */
  streams: IngestStreamJson[];
  /** Streams that are not listed. */
  otherStreams: number;
  /** Requests that were refused since the server's start, by address. */
  refused: { path: string; requests: number; lastMs: TimeMs; lastError: string }[];
  /** Values of the labels of each service; the largest first. `overflowed` values are stored as `__overflow__`. */
  labels: { service: string; label: string; values: number; overflowed: number }[];
  storage: {
    /** Rows of samples and metrics. `bytes`: the share of the days' files. */
    services: { service: string; processes: number; rows: number; bytes: Bytes }[];
    tiers: { tier: string; days: number; bytes: Bytes; fromMs: TimeMs; toMs: TimeMs }[];
    /** Functions, stacks, processes, labels. */
    dictionariesBytes: Bytes;
    recordings: { streams: number; bytes: Bytes };
  };
  retention: {
    keepMs: Millis;
    keepRecordingsMs: Millis;
    bytes: Bytes;
    /** The age at which a day leaves this tier. */
    tiers: { tier: string; untilMs: Millis }[];
  };
}
