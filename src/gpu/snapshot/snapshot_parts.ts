/** The outermost dictionary of a snapshot: which rows are whose. */

import { float64At, uint8At } from "../../model/base/columns.js";
import type { PickleMachine } from "../pickle/pickle_machine.js";
import { Kind } from "../pickle/token.js";
import type { DictionaryFields } from "./dictionary_fields.js";
import { KEY, KEYS } from "./snapshot_keys.js";

export interface RowRange {
  readonly kind: number;
  readonly first: number;
  readonly count: number;
}

/** What the outermost dictionary named. */
export interface Parts {
  readonly segments: RowRange;
  readonly traces: readonly RowRange[];
  /** Rows of pinned host memory; they lie beside `segments`. */
  readonly hostSegments: RowRange;
  readonly hostTrace: RowRange;
  readonly annotations: RowRange;
  /** String id of JSON; 0 where there are none. */
  readonly settings: number;
}

/** What tokens of row lists stand for. */
interface RowLists {
  rangeOf(kind: number, value: number, rows: number): RowRange | undefined;
  tracesOf(value: number): readonly RowRange[];
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
    settings: fields.textId(KEY.allocator_settings),
  };

  function rows(key: number, kind: number): RowRange {
    const range = fields.has(key)
      ? lists.rangeOf(uint8At(fields.kinds, key), float64At(fields.values, key), kind)
      : { kind, first: 0, count: 0 };
    if (range === undefined) {
      throw machine.damaged(`"${KEYS[key]}" holds something else`);
    }
    return range;
  }

  function traces(key: number): readonly RowRange[] {
    const kind = uint8At(fields.kinds, key);
    if (!fields.has(key) || kind === Kind.openList || kind === Kind.none) {
      return [];
    }
    if (kind !== Kind.traces) {
      throw machine.damaged(`"${KEYS[key]}" holds something else`);
    }
    return lists.tracesOf(float64At(fields.values, key));
  }

  /** One list of entries, or a list of such lists as devices have it: they follow one another. */
  function hostTrace(): RowRange {
    const key = KEY.host_traces;
    const one = fields.has(key)
      ? lists.rangeOf(uint8At(fields.kinds, key), float64At(fields.values, key), Kind.event)
      : undefined;
    const all = one === undefined ? traces(key).filter(({ count }) => count > 0) : [one];
    return {
      kind: Kind.event,
      first: all[0]?.first ?? 0,
      count: all.reduce((sum, { count }) => sum + count, 0),
    };
  }
}
