/** The value of one object as text, if requested by address: only strings, bytes and numbers. */

import { float64At, uint32At } from "../../../model/base/columns.js";
import type { Address } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import type { ObjectGraph } from "../graph/graph.js";
import { readBytes, readStr } from "../objects/small_objects.js";
import { SHAPE_BYTES, SHAPE_INT, SHAPE_STR } from "../objects/type_table.js";

const MOST_CHARACTERS = 200;
const MOST_DIGITS = 64;
const DIGIT_BITS = 30n;
const DIGITS_AT = 24;

/** null for an object of another kind. */
export function readValue(
  { graph, types, copy, layout }: ObjectGraph,
  node: NodeId,
): string | null {
  const address = float64At(graph.address, node);
  const row = uint32At(graph.type, node);
  switch (types.of(row).shape) {
    case SHAPE_STR: {
      const text = readStr(copy, layout, address, MOST_CHARACTERS);
      return text === null ? null : JSON.stringify(text);
    }
    case SHAPE_BYTES: {
      const length = Math.min(copy.word(address + 16), MOST_CHARACTERS);
      const bytes = length < 0 ? null : readBytes(copy, address + 32, length);
      return bytes === null ? null : `${length} bytes: ${Buffer.from(bytes).toString("hex")}`;
    }
    case SHAPE_INT:
      return readIntAt({ copy, layout }, address);
    default: {
      const at = types.name(row) === "float" ? copy.index(address + 16) : -1;
      return at < 0
        ? null
        : String(float64At(new Float64Array(copy.words.slice(at, at + 2).buffer), 0));
    }
  }
}

/** The int at an address that is known to contain one. */
export function readIntAt(
  { copy, layout }: Pick<ObjectGraph, "copy" | "layout">,
  address: Address,
): string | null {
  return readInt(copy.words, copy.index(address + 16), layout.taggedInts);
}

/** Digits of 30 bits, lowest first; the sign is that of the size, or is in the lowest two bits of the tag. */
function readInt(words: Uint32Array, at: number, tagged: boolean): string | null {
  if (at < 0) {
    return null;
  }
  const size = tagged ? (words[at] ?? 0) >>> 3 : Math.abs((words[at] ?? 0) | 0);
  const negative = tagged ? ((words[at] ?? 0) & 3) === 2 : ((words[at] ?? 0) | 0) < 0;
  if (size > MOST_DIGITS) {
    return `an int of ${size * Number(DIGIT_BITS)} bits`;
  }
  let value = 0n;
  for (let digit = size - 1; digit >= 0; digit--) {
    value = (value << DIGIT_BITS) | BigInt(words[at + (DIGITS_AT - 16) / 4 + digit] ?? 0);
  }
  return String(negative ? -value : value);
}
