/** Converts one process's event ring to marks on the timeline. */

import { itemAt } from "../model/base/columns.js";
import type { Pid } from "../model/base/units.js";
import type { TimelineEvent } from "../model/profile/series.js";
import { readUint64 } from "./bytes.js";
import { CONSTANTS, EVENT } from "./layout.js";
import type { SegmentSnapshot } from "./reader.js";

export class EventRing {
  /** Sequence number of the next event to read. */
  #next = 0;
  /** Events overwritten before a snapshot read them. */
  lost = 0;

  /** The events since the last call, oldest first. `words`: the text of a label's number. */
  take(snapshot: SegmentSnapshot, pid: Pid, words: (label: number) => string): TimelineEvent[] {
    const section = itemAt(snapshot.header.sections, CONSTANTS.TM_SECTION_EVENTS);
    const end = section.count;
    const oldest = Math.max(0, end - section.capacity);
    this.lost += Math.max(0, oldest - this.#next);
    const bytes = snapshot.events.bytes;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const toRealtime = snapshot.header.startRealtimeMs - snapshot.header.startMonotonicMs;
    const events: TimelineEvent[] = [];
    for (let number = Math.max(this.#next, oldest); number < end; number++) {
      const at = (number % section.capacity) * EVENT.size;
      if (at + EVENT.size > bytes.length) {
        break;
      }
      const kind = KINDS[view.getUint32(at + EVENT.kind, true)];
      if (kind !== undefined) {
        const value = readUint64(view, at + EVENT.value);
        events.push({
          timeMs: readUint64(view, at + EVENT.ms) + toRealtime,
          pid,
          kind: kind.name,
          detail: kind.detail(value, words(view.getUint32(at + EVENT.label, true))),
          value,
        });
      }
      this.#next = number + 1;
    }
    return events;
  }
}

interface EventKind {
  readonly name: TimelineEvent["kind"];
  readonly detail: (value: number, words: string) => string;
}

const KINDS: Readonly<Record<number, EventKind>> = {
  [CONSTANTS.TM_EVENT_STEP_BEGIN]: { name: "step-begin", detail: (_, words) => words },
  [CONSTANTS.TM_EVENT_STEP_END]: { name: "step-end", detail: (_, words) => words },
  [CONSTANTS.TM_EVENT_PERIOD]: {
    name: "period",
    detail: (value) => `one sample every ${value} bytes`,
  },
  [CONSTANTS.TM_EVENT_OFF]: { name: "limit", detail: () => "the agent disabled itself" },
};
