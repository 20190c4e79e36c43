/** The outermost dictionary of a snapshot, which assigns rows to devices. */

import type { PickleMachine } from "../pickle/pickle_machine.js";
import { Kind } from "../pickle/token.js";
import type { DictionaryFields } from "./dictionary_fields.js";
import type { RowLists, RowRange } from "./row_lists.js";
import { KEY, KEYS } from "./snapshot_keys.js";

/** The parts that the outermost dictionary names. */
export interface Parts {
  readonly segments: RowRange;
  readonly traces: readonly RowRange[];
  /** Rows of pinned host memory, stored with `segments`. */
  readonly hostSegments: RowRange;
  readonly hostTrace: RowRange;
  readonly annotations: RowRange;
  /** String id of JSON; 0 if there is none. */
  readonly settings: number;
}

export function readParts(
  fields: DictionaryFields,
  machine: PickleMachine,
  lists: RowLists,
): Parts {
  return {
    segments: rows(KEY.segments, Kind.segment),
    traces: traces(KEY.device_traces),
    hostSegments: rows(KEY.host_segments, Kind.segment),
    hostTrace: hostTrace(),
    annotations: rows(KEY.external_annotations, Kind.annotation),
    settings:
      fields.kind(KEY.allocator_settings) === Kind.record
        ? fields.textId(KEY.allocator_settings)
        : 0,
  };

  function rows(key: number, kind: number): RowRange {
    const range = fields.has(key)
      ? lists.rangeOf(fields.kind(key), fields.value(key), kind)
      : { kind, first: 0, count: 0 };
    if (range === undefined) {
      throw machine.damaged(`"${KEYS[key]}" has an unexpected value`);
    }
    return range;
  }

  function traces(key: number): readonly RowRange[] {
    const kind = fields.kind(key);
    if (kind === Kind.openList || kind === Kind.none) {
      return [];
    }
    if (kind !== Kind.traces) {
      throw machine.damaged(`"${KEYS[key]}" has an unexpected value`);
    }
    return lists.tracesOf(fields.value(key));
  }

  /** One list of entries, or, for devices, a list of such lists, which are concatenated. */
  function hostTrace(): RowRange {
    const key = KEY.host_traces;
    const one = fields.has(key)
      ? lists.rangeOf(fields.kind(key), fields.value(key), Kind.event)
      : undefined;
    const all = one === undefined ? traces(key).filter(({ count }) => count > 0) : [one];
    return {
      kind: Kind.event,
      first: all[0]?.first ?? 0,
      count: all.reduce((sum, { count }) => sum + count, 0),
    };
  }
}
