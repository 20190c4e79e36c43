/** Kinds of values on the pickle's stack; a number identifies the value. */
export const Kind = {
  none: 0,
  number: 1,
  boolean: 2,
  /** String id. */
  string: 3,
  /** A container without items so far: its memo entry, or -1. */
  openDict: 4,
  openList: 5,
  /** Stack id: a list of frames. */
  stack: 6,
  /** Frame id. */
  frame: 7,
  /** Row of their columns. */
  event: 8,
  segment: 9,
  block: 10,
  history: 11,
  annotation: 12,
  /** Number of a row range, for a list of such rows. */
  rows: 13,
  /** Number of a list of row ranges: the traces of all devices. */
  traces: 14,
  /** String id of JSON: any other dictionary, list or tuple. */
  record: 15,
  /** The whole snapshot. */
  snapshot: 16,
} as const;
