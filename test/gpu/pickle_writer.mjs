/**
 * Writes plain values as a pickle, in pieces, like either of the two picklers that write snapshots:
 *
 *   python   pickle.dump of protocol 2 to 5: batches of 1,000 items, MEMOIZE and FRAME from 4 on
 *   native   torch's own C++ pickler (protocol 2): no batches, whole numbers as LONG1 of 8 bytes
 *
 * Repeated objects (by identity) and repeated strings (by text) are fetched from the memo.
 */

/** A number that is written as a float even if it is whole; other whole numbers are written as ints. */
export class PythonFloat {
  /** @param {number} value */
  constructor(value) {
    this.value = value;
  }
}

export class PythonTuple {
  /** @param {unknown[]} items */
  constructor(items) {
    this.items = items;
  }
}

/** A list whose items are created while it is written. */
export class PythonList {
  /** @param {Iterable<unknown>} items */
  constructor(items) {
    this.items = items;
  }
}

const BATCH = 1000;
const PIECE = 1 << 20;

/**
 * @param {unknown} value
 * @param {{protocol?: 2 | 3 | 4 | 5, style?: "python" | "native"}} [settings]
 * @returns {Uint8Array}
 */
export function pickle(value, settings) {
  return Buffer.concat([...pickledPieces(value, settings)]);
}

/**
 * @param {unknown} value
 * @param {{protocol?: 2 | 3 | 4 | 5, style?: "python" | "native"}} [settings]
 * @returns {Generator<Uint8Array>}
 */
export function* pickledPieces(value, { protocol = 4, style = "python" } = {}) {
  const writer = new Writer(style === "native" ? 2 : protocol, style);
  yield* writer.whole(value);
}

class Writer {
  #bytes = Buffer.alloc(PIECE + (1 << 17));
  #used = 0;
  #memo = 0;
  /** @type {Map<unknown, number>} */
  #known = new Map();

  /** @param {number} protocol @param {"python" | "native"} style */
  constructor(protocol, style) {
    this.protocol = protocol;
    this.style = style;
  }

  /** @param {unknown} value @returns {Generator<Uint8Array>} */
  *whole(value) {
    yield Buffer.from([0x80, this.protocol]);
    yield* this.#value(value);
    this.#byte(0x2e);
    yield* this.#flush();
  }

  *#flush() {
    const bytes = Buffer.from(this.#bytes.subarray(0, this.#used));
    this.#used = 0;
    if (this.protocol >= 4) {
      const frame = Buffer.alloc(9);
      frame[0] = 0x95;
      frame.writeBigUInt64LE(BigInt(bytes.length), 1);
      yield frame;
    }
    yield bytes;
  }

  /** @param {unknown} value @returns {Generator<Uint8Array>} */
  *#value(value) {
    if (this.#used >= PIECE) {
      yield* this.#flush();
    }
    if (typeof value === "number") {
      this.#integer(value);
    } else if (typeof value === "string") {
      this.#string(value);
    } else if (typeof value === "boolean") {
      this.#byte(value ? 0x88 : 0x89);
    } else if (value === null || value === undefined) {
      this.#byte(0x4e);
    } else if (value instanceof PythonFloat) {
      this.#byte(0x47);
      this.#used = this.#bytes.writeDoubleBE(value.value, this.#used);
    } else if (this.#known.has(value)) {
      this.#get(/** @type {number} */ (this.#known.get(value)));
    } else if (value instanceof PythonTuple) {
      yield* this.#tuple(value);
    } else if (Array.isArray(value) || value instanceof PythonList) {
      yield* this.#list(Array.isArray(value) ? value : value.items, value);
    } else {
      yield* this.#dictionary(/** @type {object} */ (value));
    }
  }

  /** @param {PythonTuple} tuple */
  *#tuple({ items }) {
    if (items.length > 3) {
      this.#byte(0x28);
    }
    for (const item of items) {
      yield* this.#value(item);
    }
    this.#byte([0x29, 0x85, 0x86, 0x87][items.length] ?? 0x74);
    if (items.length > 0) {
      this.#put(undefined);
    }
  }

  /** @param {Iterable<unknown>} items @param {unknown} identity */
  *#list(items, identity) {
    this.#byte(0x5d);
    this.#put(Array.isArray(identity) && Object.isFrozen(identity) ? identity : undefined);
    yield* this.#items(items, 0x65, 0x61, (item) => this.#value(item));
  }

  /** @param {object} dictionary */
  *#dictionary(dictionary) {
    this.#byte(0x7d);
    this.#put(Object.isFrozen(dictionary) ? dictionary : undefined);
    const self = this;
    yield* this.#items(Object.entries(dictionary), 0x75, 0x73, function* ([key, item]) {
      self.#string(key);
      yield* self.#value(item);
    });
  }

  /**
   * @template Item
   * @param {Iterable<Item>} items
   * @param {number} many opcode that adds all items since the MARK
   * @param {number} single opcode that adds one item, which Python's pickler uses for a batch of one
   * @param {(item: Item) => Generator<Uint8Array>} write
   */
  *#items(items, many, single, write) {
    const batch = this.style === "python" ? BATCH : Number.POSITIVE_INFINITY;
    const iterator = items[Symbol.iterator]();
    let next = iterator.next();
    while (!next.done) {
      const first = next.value;
      next = iterator.next();
      if (next.done && this.style === "python") {
        yield* write(first);
        this.#byte(single);
        return;
      }
      this.#byte(0x28);
      yield* write(first);
      for (let count = 1; !next.done && count < batch; count++) {
        yield* write(next.value);
        next = iterator.next();
      }
      this.#byte(many);
    }
  }

  /** @param {number} value */
  #integer(value) {
    const native = this.style === "native";
    if (value >= 0 && value < 256) {
      this.#byte(0x4b, value);
    } else if (value >= 0 && value < 65536) {
      this.#byte(0x4d, value & 255, value >>> 8);
    } else if (value >= -(2 ** 31) && value < 2 ** 31) {
      this.#byte(0x4a);
      this.#used = this.#bytes.writeInt32LE(value, this.#used);
    } else {
      this.#long(value, native ? 8 : undefined);
    }
  }

  /** @param {number} value @param {number | undefined} width in bytes; the shortest where undefined */
  #long(value, width) {
    const bytes = [];
    let rest = value;
    do {
      bytes.push(((rest % 256) + 256) % 256);
      rest = Math.floor(rest / 256);
    } while (rest !== 0 && rest !== -1);
    const sign = value < 0 ? 255 : 0;
    if ((bytes.at(-1) ?? 0) >= 128 !== value < 0) {
      bytes.push(sign);
    }
    while (width !== undefined && bytes.length < width) {
      bytes.push(sign);
    }
    this.#byte(0x8a, bytes.length, ...bytes);
  }

  /** @param {string} text */
  #string(text) {
    const known = this.#known.get(text);
    if (known !== undefined) {
      this.#get(known);
      return;
    }
    const bytes = Buffer.from(text);
    if (this.#used + bytes.length + 16 > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(bytes.length + 16)]);
    }
    if (this.protocol >= 4 && bytes.length < 256) {
      this.#byte(0x8c, bytes.length);
    } else {
      this.#byte(0x58);
      this.#used = this.#bytes.writeUInt32LE(bytes.length, this.#used);
    }
    bytes.copy(this.#bytes, this.#used);
    this.#used += bytes.length;
    this.#put(text);
  }

  /** @param {unknown} identity remembered where it may occur again */
  #put(identity) {
    const index = this.#memo++;
    if (identity !== undefined) {
      this.#known.set(identity, index);
    }
    if (this.protocol >= 4) {
      this.#byte(0x94);
    } else if (index < 256) {
      this.#byte(0x71, index);
    } else {
      this.#byte(0x72);
      this.#used = this.#bytes.writeUInt32LE(index, this.#used);
    }
  }

  /** @param {number} index */
  #get(index) {
    if (index < 256) {
      this.#byte(0x68, index);
    } else {
      this.#byte(0x6a);
      this.#used = this.#bytes.writeUInt32LE(index, this.#used);
    }
  }

  /** @param {number[]} bytes */
  #byte(...bytes) {
    for (const byte of bytes) {
      this.#bytes[this.#used++] = byte;
    }
  }
}
