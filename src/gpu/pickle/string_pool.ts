/** Strings stored once, by their UTF-8 bytes; ids follow the order of first occurrence; 0 is "". */

const EMPTY = -1;

export class StringPool {
  #bytes = new Uint8Array(1 << 16);
  #used = 0;
  /** Start of string i; it ends where the next one begins. */
  #starts = new Float64Array(1024);
  #hashes = new Uint32Array(1024);
  #slots = new Int32Array(4096).fill(EMPTY);
  readonly #encoder = new TextEncoder();
  length = 0;

  constructor() {
    this.intern(this.#bytes, 0, 0);
  }

  /** The id of `bytes[from, to)`. */
  intern(bytes: Uint8Array, from: number, to: number): number {
    const hash = hashOf(bytes, from, to);
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (let id = this.#slots[slot] ?? 0; id !== EMPTY; id = this.#slots[slot] ?? 0) {
      if (this.#hashes[id] === hash && this.#same(id, bytes, from, to)) {
        return id;
      }
      slot = (slot + 1) & mask;
    }
    this.#slots[slot] = this.length;
    return this.#add(bytes, from, to, hash);
  }

  internText(text: string): number {
    const bytes = this.#encoder.encode(text);
    return this.intern(bytes, 0, bytes.length);
  }

  text(id: number): string {
    return new TextDecoder().decode(
      this.#bytes.subarray(this.#starts[id] ?? 0, this.#starts[id + 1] ?? 0),
    );
  }

  /** Bytes of a string. */
  size(id: number): number {
    return (this.#starts[id + 1] ?? 0) - (this.#starts[id] ?? 0);
  }

  texts(): string[] {
    const decoder = new TextDecoder();
    return Array.from({ length: this.length }, (_, id) =>
      decoder.decode(this.#bytes.subarray(this.#starts[id] ?? 0, this.#starts[id + 1] ?? 0)),
    );
  }

  #same(id: number, bytes: Uint8Array, from: number, to: number): boolean {
    const start = this.#starts[id] ?? 0;
    if ((this.#starts[id + 1] ?? 0) - start !== to - from) {
      return false;
    }
    for (let at = from, own = start; at < to; at++, own++) {
      if (this.#bytes[own] !== bytes[at]) {
        return false;
      }
    }
    return true;
  }

  #add(bytes: Uint8Array, from: number, to: number, hash: number): number {
    const id = this.length++;
    if (this.#used + to - from > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#used + to - from));
      grown.set(this.#bytes.subarray(0, this.#used));
      this.#bytes = grown;
    }
    if (id + 2 > this.#starts.length) {
      const starts = new Float64Array(this.#starts.length * 2);
      starts.set(this.#starts);
      this.#starts = starts;
      const hashes = new Uint32Array(starts.length);
      hashes.set(this.#hashes);
      this.#hashes = hashes;
    }
    for (let at = from; at < to; at++) {
      this.#bytes[this.#used++] = bytes[at] ?? 0;
    }
    this.#starts[id + 1] = this.#used;
    this.#hashes[id] = hash;
    if (this.length * 2 > this.#slots.length) {
      this.#widen();
    }
    return id;
  }

  #widen(): void {
    const slots = new Int32Array(this.#slots.length * 2).fill(EMPTY);
    const mask = slots.length - 1;
    for (let id = 0; id < this.length; id++) {
      let slot = (this.#hashes[id] ?? 0) & mask;
      while (slots[slot] !== EMPTY) {
        slot = (slot + 1) & mask;
      }
      slots[slot] = id;
    }
    this.#slots = slots;
  }
}

/** FNV-1a. */
function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let at = from; at < to; at++) {
    hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  }
  return (hash ^ (hash >>> 15)) >>> 0;
}
