/** Hand-written protocol buffers: what a client sends, independent of the code that the server reads it with. */
export class Message {
  readonly #parts: Buffer[] = [];

  /** A number, as a varint. */
  number(field: number, value: number | bigint): this {
    return this.#add(field, 0, varint(value));
  }

  /** A packed list of numbers. */
  numbers(field: number, values: readonly number[]): this {
    return this.bytes(field, Buffer.concat(values.map(varint)));
  }

  double(field: number, value: number): this {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value);
    return this.#add(field, 1, bytes);
  }

  fixed64(field: number, value: bigint): this {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(value);
    return this.#add(field, 1, bytes);
  }

  text(field: number, value: string): this {
    return this.bytes(field, Buffer.from(value));
  }

  bytes(field: number, value: Buffer): this {
    return this.#add(field, 2, Buffer.concat([varint(value.length), value]));
  }

  message(field: number, fill: (message: Message) => unknown): this {
    const inner = new Message();
    fill(inner);
    return this.bytes(field, inner.done());
  }

  done(): Buffer {
    return Buffer.concat(this.#parts);
  }

  #add(field: number, type: number, value: Buffer): this {
    this.#parts.push(varint(field * 8 + type), value);
    return this;
  }
}

/** A field of a message that was read. */
export interface Field {
  readonly number: number;
  readonly value: number | Buffer;
}

/** The fields of a message: numbers, 8 bytes of doubles, and the bytes of everything else. */
export function fieldsOf(bytes: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const next = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) {
        return value;
      }
    }
  };
  while (at < bytes.length) {
    const tag = next();
    const number = Math.floor(tag / 8);
    if (tag % 8 === 0) {
      fields.push({ number, value: next() });
    } else {
      const length = tag % 8 === 1 ? 8 : next();
      fields.push({ number, value: bytes.subarray(at, at + length) });
      at += length;
    }
  }
  return fields;
}

/** A packed list of numbers. */
export function numbersIn(bytes: Buffer): number[] {
  const prefixed = Buffer.concat(
    Array.from(splitVarints(bytes), (part) => Buffer.concat([Buffer.from([8]), part])),
  );
  return fieldsOf(prefixed).map(({ value }) => Number(value));
}

function* splitVarints(bytes: Buffer): Generator<Buffer> {
  let begin = 0;
  for (let at = 0; at < bytes.length; at++) {
    if ((bytes[at] ?? 0) < 128) {
      yield bytes.subarray(begin, at + 1);
      begin = at + 1;
    }
  }
}

function varint(value: number | bigint): Buffer {
  const bytes: number[] = [];
  let left = BigInt(value);
  do {
    const low = Number(left & 127n);
    left >>= 7n;
    bytes.push(left > 0n ? low | 128 : low);
  } while (left > 0n);
  return Buffer.from(bytes);
}
