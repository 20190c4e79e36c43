/**
 * How a collector uploads an artifact: its files, in pieces, and then its `about.json`, which completes it.
 *
 *     PUT /api/v1/artifacts/ID/heap-42.json?sha256=...&bytes=TOTAL&offset=N     the file's bytes from N on
 *     PUT /api/v1/artifacts/ID/about.json?sha256=...&bytes=TOTAL                tidemark.artifact/1
 *     200 {"nextOffset": M, "complete": false}     continue from M
 *     200 {"nextOffset": TOTAL, "complete": true}  the file is stored and synced to disk, now or before
 *     409 {"error": ..., "nextOffset": M}          the stored part is shorter or longer than N: continue from M
 *     409 {"error": ..., "missing": [NAME]}        send these files before about.json
 *     400, 401, 413, 415, 503 {"error": ...}
 */

export const ARTIFACTS_PATH = "/api/v1/artifacts";
export const ARTIFACT_FILE_PATH = "/api/v1/artifacts/{id}/{name}";
/** A recording or black box of an artifact as a report, for its page. */
export const ARTIFACT_REPORT_PATH = "/api/v1/artifacts/{id}/{name}/report";
/** ID: the first 32 hex digits of the SHA-256 of `about.json`. */
export const ARTIFACT_ID = /^[0-9a-f]{32}$/;
export const ARTIFACT_FILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;
export const ARTIFACT_ABOUT = "about.json";
/** Bytes of one request. */
export const MOST_PIECE_BYTES = 32 << 20;
/** Size of `about.json`. */
export const MOST_ABOUT_BYTES = 1 << 20;

/** Answer of `PUT /api/v1/artifacts/ID/NAME`. */
export interface ArtifactAnswer {
  /** The offset from which the sender continues; absent if it must not continue. */
  readonly nextOffset?: number;
  readonly complete?: boolean;
  /** Files that must be sent before `about.json`. */
  readonly missing?: readonly string[];
  /** One line for people. */
  readonly error?: string;
}
