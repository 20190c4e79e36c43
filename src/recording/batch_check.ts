/** A frame's checksum proves that it is unchanged; these checks verify that it is valid. */

/** Thrown for a batch that a recorder cannot have written; the reader turns it into the recording's damage. */
export class BatchError extends Error {}

const COLUMN_CLASSES = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  f32: Float32Array,
  f64: Float64Array,
} as const;
const SCALARS = {
  number: (value: unknown) => typeof value === "number" && Number.isFinite(value),
  string: (value: unknown) => typeof value === "string",
  "number?": (value: unknown) =>
    value === null || (typeof value === "number" && Number.isFinite(value)),
} as const;
const LISTS = {
  strings: (value: unknown) => typeof value === "string",
  lists: (value: unknown) =>
    Array.isArray(value) && value.every((part) => typeof part === "string"),
} as const;

type FieldType = keyof typeof COLUMN_CLASSES | keyof typeof SCALARS | keyof typeof LISTS;

/** Checks the fields' types, and that all columns and lists have one length; returns it (0 without columns). */
export function checkTable(
  value: unknown,
  fields: Readonly<Record<string, FieldType>>,
  name: string,
): number {
  const table = record(value, name);
  let length: number | undefined;
  for (const [field, type] of Object.entries(fields)) {
    const cell = table[field];
    if (type in SCALARS) {
      demand(SCALARS[type as keyof typeof SCALARS](cell), `${name}.${field} is not a ${type}`);
      continue;
    }
    const found =
      type in LISTS ? listLength(cell, type as keyof typeof LISTS) : columnLength(cell, type);
    demand(found !== null, `${name}.${field} is not a column of ${type}`);
    length ??= found;
    demand(found === length, `${name}.${field} has ${found} rows, the others ${length}`);
  }
  return length ?? 0;
}

export function record(value: unknown, name: string): Record<string, unknown> {
  demand(
    typeof value === "object" && value !== null && !Array.isArray(value),
    `${name} is missing`,
  );
  return value as Record<string, unknown>;
}

/** Checks that every id is a row of a table of `length` rows. */
export function checkIds(ids: ArrayLike<number>, length: number, name: string): void {
  for (let i = 0; i < ids.length; i++) {
    if ((ids[i] ?? 0) >= length) {
      throw new BatchError(`${name} names row ${ids[i]} of ${length}`);
    }
  }
}

/** Checks that the rows from `from` on name parents before themselves. */
export function checkParents(parents: ArrayLike<number>, from: number, name: string): void {
  for (let i = 0; i < parents.length; i++) {
    if ((parents[i] ?? 0) >= from + i && from + i > 0) {
      throw new BatchError(`${name} ${from + i} is not after its parent`);
    }
  }
}

export function demand(condition: boolean, otherwise: string): asserts condition {
  if (!condition) {
    throw new BatchError(otherwise);
  }
}

function listLength(value: unknown, type: keyof typeof LISTS): number | null {
  return Array.isArray(value) && value.every(LISTS[type]) ? value.length : null;
}

function columnLength(value: unknown, type: string): number | null {
  const Class = COLUMN_CLASSES[type as keyof typeof COLUMN_CLASSES];
  return value instanceof Class ? value.length : null;
}
