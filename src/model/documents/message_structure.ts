/**
 * Validates the structure of a MessagePack value before it is decoded. A decoder allocates the size claimed in
 * a header, so five bytes could request gigabytes, and nested headers could overflow the stack. Here every
 * claim must be covered by existing bytes (every element takes at least one).
 *
 * Source: https://github.com/msgpack/msgpack/blob/master/spec.md, "Formats".
 */
import { float64At } from "../base/columns.js";

/** Deepest nesting of arrays and objects; far more than any of our documents. */
const MAX_DEPTH = 64;

/** @throws Error when `bytes` is not exactly one whole value, or is nested too deeply. */
export function checkMessageStructure(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  /** Values that are still missing in each open array or object; [0] is the document itself. */
  const pending = new Float64Array(MAX_DEPTH + 1);
  pending[0] = 1;
  let depth = 0;
  let promised = 1;
  let position = 0;

  while (promised > 0) {
    if (promised > bytes.length - position) {
      throw new Error("it ends too early");
    }
    while (pending[depth] === 0) {
      depth -= 1;
    }
    pending[depth] = float64At(pending, depth) - 1;
    promised -= 1;

    const header = headerAt(view, position);
    position += header.bytes;
    if (position > bytes.length) {
      throw new Error("it ends too early");
    }
    if (header.children > 0) {
      if (depth === MAX_DEPTH) {
        throw new Error("it is nested too deeply");
      }
      depth += 1;
      pending[depth] = header.children;
      promised += header.children;
    }
  }
  if (position !== bytes.length) {
    throw new Error("more bytes follow its end");
  }
}

/** Reused, because it is needed for every value. */
const header = { bytes: 0, children: 0 };

/** The bytes of a value without its children, and the number of children (for an object: keys and values).
 * Reading a length past the end throws RangeError. */
function headerAt(
  view: DataView,
  position: number,
): { readonly bytes: number; readonly children: number } {
  const head = view.getUint8(position);
  header.children = 0;
  if (head < 0x80 || head >= 0xe0) {
    return taking(1);
  }
  if (head < 0x90) {
    return holding(1, 2 * (head & 0x0f));
  }
  if (head < 0xa0) {
    return holding(1, head & 0x0f);
  }
  if (head < 0xc0) {
    return taking(1 + (head & 0x1f));
  }
  switch (head) {
    case 0xc1:
      throw new Error("it contains a byte that no value begins with");
    case 0xc4: // bin 8
    case 0xd9: // str 8
      return taking(2 + view.getUint8(position + 1));
    case 0xc5:
    case 0xda:
      return taking(3 + view.getUint16(position + 1));
    case 0xc6:
    case 0xdb:
      return taking(5 + view.getUint32(position + 1));
    case 0xc7: // ext 8: length, type
      return taking(3 + view.getUint8(position + 1));
    case 0xc8:
      return taking(4 + view.getUint16(position + 1));
    case 0xc9:
      return taking(6 + view.getUint32(position + 1));
    case 0xcc: // 8-bit numbers
    case 0xd0:
      return taking(2);
    case 0xcd:
    case 0xd1:
      return taking(3);
    case 0xca:
    case 0xce:
    case 0xd2:
      return taking(5);
    case 0xcb:
    case 0xcf:
    case 0xd3:
      return taking(9);
    case 0xd4: // fixext 1, 2, 4, 8, 16: type, payload
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return taking(2 + (1 << (head - 0xd4)));
    case 0xdc:
      return holding(3, view.getUint16(position + 1));
    case 0xdd:
      return holding(5, view.getUint32(position + 1));
    case 0xde:
      return holding(3, 2 * view.getUint16(position + 1));
    case 0xdf:
      return holding(5, 2 * view.getUint32(position + 1));
    default: // 0xc0 nil, 0xc2 false, 0xc3 true
      return taking(1);
  }
}

function taking(bytes: number): typeof header {
  header.bytes = bytes;
  return header;
}

function holding(bytes: number, children: number): typeof header {
  header.bytes = bytes;
  header.children = children;
  return header;
}
