/**
 * Rows in ClickHouse's format RowBinary:
 *
 *     UInt64, Int64, Float64: 8 bytes | Int32, UInt32: 4 | String: length as a variable-length number, UTF-8
 *     Array(T): number of values as a variable-length number, values
 *
 * All little-endian, without anything between values or rows.
 */
import type { ColumnValue } from "../duckdb/schema.js";

const FIRST_BYTES = 1 << 16;
const UTF8 = new TextEncoder();

export class RowBinary {
  #bytes = new Uint8Array(FIRST_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;
  #rows = 0;

  /** What has been written. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  get rows(): number {
    return this.#rows;
  }

  /** `types`: ClickHouse's, of each value. */
  addRow(types: readonly string[], values: readonly ColumnValue[]): void {
    for (let column = 0; column < types.length; column++) {
      this.#add(types[column] ?? "", values[column] ?? "");
    }
    this.#rows += 1;
  }

  clear(): void {
    this.#at = 0;
    this.#rows = 0;
  }

  #add(type: string, value: ColumnValue): void {
    this.#reserve(8);
    switch (type) {
      case "String":
        this.#text(String(value));
        return;
      case "Float64":
        this.#view.setFloat64(this.#at, Number(value), true);
        this.#at += 8;
        return;
      case "UInt64":
        this.#view.setBigUint64(this.#at, BigInt(value as bigint | number), true);
        this.#at += 8;
        return;
      case "Int64": {
        const whole = Number(value);
        this.#view.setUint32(this.#at, whole >>> 0, true);
        this.#view.setInt32(this.#at + 4, Math.floor(whole / 2 ** 32), true);
        this.#at += 8;
        return;
      }
      case "Int32":
      case "UInt32":
        this.#view.setUint32(this.#at, Number(value) >>> 0, true);
        this.#at += 4;
        return;
      default: {
        const [, item = ""] = /^Array\((\w+)\)$/.exec(type) ?? [];
        if (item === "") {
          throw new Error(`no such type: ${type}`);
        }
        const items = value as readonly (string | bigint)[];
        this.#length(items.length);
        for (const each of items) {
          this.#add(item, each);
        }
      }
    }
  }

  #text(text: string): void {
    // A character is at most 3 bytes for each of its units.
    this.#reserve(text.length * 3 + 8);
    const encoded = UTF8.encode(text);
    this.#length(encoded.length);
    this.#bytes.set(encoded, this.#at);
    this.#at += encoded.length;
  }

  #length(length: number): void {
    this.#reserve(8);
    let rest = length;
    while (rest >= 0x80) {
      this.#bytes[this.#at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#at++] = rest;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#at + bytes));
      grown.set(this.#bytes.subarray(0, this.#at));
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
  }
}
