/** What a value on the pickle's stack is; the number beside it says which. */
export const Kind = {
  none: 0,
  number: 1,
  boolean: 2,
  /** String id. */
  string: 3,
  /** A container without items so far: its memo entry, -1 where it has none. */
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
  /** Number of a row range: a list of such rows. */
  rows: 13,
  /** Number of a list of row ranges: the traces of all devices. */
  traces: 14,
  /** String id of JSON: any other dictionary, list or tuple. */
  record: 15,
  /** The whole. */
  snapshot: 16,
} as const;
