/** The stack that opened each of a process's descriptors, as recorded by its agent. */
import type { StackId, TimeMs } from "../model/base/units.js";
import type { ProcessDictionary } from "./dictionary.js";
import { OPENING } from "./layout.js";
import type { SegmentSnapshot } from "./reader.js";

/** The latest opening of a descriptor, which may have been closed since. */
export interface Opening {
  readonly descriptor: number;
  readonly stack: StackId;
  /** To the second. */
  readonly openedMs: TimeMs;
}

export function openingsOf(snapshot: SegmentSnapshot, dictionary: ProcessDictionary): Opening[] {
  const { bytes } = snapshot.openings;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const openings: Opening[] = [];
  for (let at = 0; at + OPENING.size <= bytes.length; at += OPENING.size) {
    const stack = view.getUint32(at + OPENING.stack, true);
    if (stack !== 0) {
      openings.push({
        descriptor: at / OPENING.size,
        stack: dictionary.stack(stack),
        openedMs:
          snapshot.header.startRealtimeMs + view.getUint32(at + OPENING.after_s, true) * 1000,
      });
    }
  }
  return openings;
}
