/** Live sampled allocations with their addresses, for holder lookups. */
import type { Address, Bytes, StackId, TimeMs } from "../model/base/units.js";
import { readUint64 } from "./bytes.js";
import type { ProcessDictionary } from "./dictionary.js";
import { LIVE, SITE } from "./layout.js";
import type { SegmentSnapshot } from "./reader.js";

/** Columns of equal length: a row is one sampled allocation. */
export interface LiveSamples {
  readonly length: number;
  readonly address: Float64Array;
  readonly bytes: Float64Array;
  readonly bornMs: Float64Array;
  readonly stack: Uint32Array;
  /** {@link Domain} */
  readonly domain: Uint8Array;
}

export function liveSamplesOf(
  snapshot: SegmentSnapshot,
  dictionary: ProcessDictionary,
): LiveSamples {
  const view = new DataView(snapshot.live.bytes.buffer, snapshot.live.bytes.byteOffset);
  const sites = new DataView(snapshot.sites.bytes.buffer, snapshot.sites.bytes.byteOffset);
  const toRealtime = snapshot.header.startRealtimeMs - snapshot.header.startMonotonicMs;
  const rows: { address: Address; bytes: Bytes; bornMs: TimeMs; stack: StackId; domain: number }[] =
    [];
  for (let at = 0; at + LIVE.size <= snapshot.live.bytes.length; at += LIVE.size) {
    const address = readUint64(view, at + LIVE.address);
    const site = view.getUint32(at + LIVE.site, true);
    if (address !== 0 && site < snapshot.sites.count) {
      const record = site * SITE.size;
      rows.push({
        address,
        bytes: readUint64(view, at + LIVE.bytes),
        bornMs: readUint64(view, at + LIVE.birth_ms) + toRealtime,
        stack: dictionary.stack(sites.getUint32(record + SITE.stack, true)),
        domain: sites.getUint16(record + SITE.domain, true),
      });
    }
  }
  return {
    length: rows.length,
    address: Float64Array.from(rows, (row) => row.address),
    bytes: Float64Array.from(rows, (row) => row.bytes),
    bornMs: Float64Array.from(rows, (row) => row.bornMs),
    stack: Uint32Array.from(rows, (row) => row.stack),
    domain: Uint8Array.from(rows, (row) => row.domain),
  };
}
