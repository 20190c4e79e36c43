/**
 * Exported symbols of the objects that a program has loaded, read from its memory as the dynamic loader reads
 * them: stripped objects, deleted files and other mount namespaces make no difference.
 *
 *   first mapping of an object    0 "\x7fELF"   16 u16 type   32 u64 program headers   54 u16 size   56 u16 count
 *   program header, 56 bytes      0 u32 type    16 u64 virtual address
 *   dynamic entry, 16 bytes       0 u64 tag     8 u64 value; glibc has made addresses absolute
 *   DT_GNU_HASH    u32 buckets, first symbol, bloom words, bloom shift; bloom u64[]; bucket u32[]; chain u32[]
 *   DT_HASH        u32 buckets, symbols; bucket u32[]; chain u32[]
 *   symbol, 24 bytes              0 u32 name    6 u16 section (0: not defined here)    8 u64 value
 *
 * Source: System V ABI, chapter 5; the GNU hash section of binutils and glibc (elf/dl-lookup.c).
 */
import { present } from "../../model/base/present.js";
import type { Address } from "../../model/base/units.js";
import type { Mapping, Memory } from "../memory/memory.js";
import { MemoryReader } from "../memory/memory_reader.js";

const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const DT_HASH = 4;
const DT_STRTAB = 5;
const DT_SYMTAB = 6;
const DT_GNU_HASH = 0x6ffffef5;
const MOST_HEADERS = 64;
const MOST_ENTRIES = 512;
const MOST_CHAIN = 1 << 16;
const LONGEST_NAME = 512;

/** One loaded object and its dynamic symbols. */
export class DynamicSymbols {
  readonly #reader: MemoryReader;
  readonly #bias: Address;
  readonly #tags: ReadonlyMap<number, number>;

  private constructor(
    reader: MemoryReader,
    /** Address at which the file begins in memory. */
    readonly mapping: Mapping,
    bias: Address,
    tags: ReadonlyMap<number, number>,
  ) {
    this.#reader = reader;
    this.#bias = bias;
    this.#tags = tags;
  }

  /** All objects of the program that export symbols; objects that cannot be read are skipped. */
  static *all(memory: Memory): Generator<DynamicSymbols> {
    const reader = new MemoryReader(memory);
    for (const mapping of memory.mappings) {
      if (mapping.offset === 0 && mapping.path.startsWith("/") && mapping.readable) {
        const object = DynamicSymbols.#read(reader, mapping);
        if (object !== null) {
          yield object;
        }
      }
    }
  }

  static #read(reader: MemoryReader, mapping: Mapping): DynamicSymbols | null {
    try {
      const start = mapping.start;
      if (reader.uint32(start) !== 0x464c457f || reader.uint8(start + 4) !== 2) {
        return null;
      }
      const headers = start + reader.uint64(start + 32);
      const size = reader.uint16(start + 54);
      const count = Math.min(reader.uint16(start + 56), MOST_HEADERS);
      let lowest = Number.POSITIVE_INFINITY;
      let dynamic = -1;
      for (let at = headers; at < headers + count * size; at += size) {
        const address = reader.uint64(at + 16);
        const type = reader.uint32(at);
        if (type === PT_LOAD) {
          lowest = Math.min(lowest, address - (address % 4096));
        } else if (type === PT_DYNAMIC) {
          dynamic = address;
        }
      }
      if (dynamic < 0 || !Number.isFinite(lowest)) {
        return null;
      }
      const bias = start - lowest;
      const tags = new Map<number, number>();
      for (let entry = 0; entry < MOST_ENTRIES; entry++) {
        const tag = reader.uint64(bias + dynamic + entry * 16);
        if (tag === 0) {
          break;
        }
        tags.set(tag, reader.uint64(bias + dynamic + entry * 16 + 8));
      }
      return tags.has(DT_SYMTAB) && tags.has(DT_STRTAB)
        ? new DynamicSymbols(reader, mapping, bias, tags)
        : null;
    } catch {
      return null; // not an ELF file, damaged, or unmapped in the meantime
    }
  }

  /** Address of a symbol that this object defines; null if it does not. */
  find(name: string): Address | null {
    try {
      return this.#tags.has(DT_GNU_HASH) ? this.#findByGnuHash(name) : this.#findByHash(name);
    } catch {
      return null;
    }
  }

  #findByGnuHash(name: string): Address | null {
    const reader = this.#reader;
    const table = this.#at(DT_GNU_HASH);
    const bucketCount = reader.uint32(table);
    const firstSymbol = reader.uint32(table + 4);
    const buckets = table + 16 + reader.uint32(table + 8) * 8;
    const chains = buckets + bucketCount * 4;
    let hash = 5381;
    for (const byte of Buffer.from(name)) {
      hash = (Math.imul(hash, 33) + byte) >>> 0;
    }
    let index = bucketCount === 0 ? 0 : reader.uint32(buckets + (hash % bucketCount) * 4);
    for (let step = 0; index >= firstSymbol && index !== 0 && step < MOST_CHAIN; step++, index++) {
      const link = reader.uint32(chains + (index - firstSymbol) * 4);
      if ((link | 1) >>> 0 === (hash | 1) >>> 0) {
        const found = this.#symbol(index, name);
        if (found !== null) {
          return found;
        }
      }
      if (link & 1) {
        break;
      }
    }
    return null;
  }

  #findByHash(name: string): Address | null {
    if (!this.#tags.has(DT_HASH)) {
      return null;
    }
    const reader = this.#reader;
    const table = this.#at(DT_HASH);
    const bucketCount = reader.uint32(table);
    const chains = table + 8 + bucketCount * 4;
    let hash = 0;
    for (const byte of Buffer.from(name)) {
      hash = ((hash << 4) + byte) >>> 0;
      const high = hash & 0xf0000000;
      hash = (hash ^ (high >>> 24)) & ~high;
    }
    let index = bucketCount === 0 ? 0 : reader.uint32(table + 8 + ((hash >>> 0) % bucketCount) * 4);
    for (let step = 0; index !== 0 && step < MOST_CHAIN; step++) {
      const found = this.#symbol(index, name);
      if (found !== null) {
        return found;
      }
      index = reader.uint32(chains + index * 4);
    }
    return null;
  }

  /** The symbol's address if it is called `name` and is defined here. */
  #symbol(index: number, name: string): Address | null {
    const reader = this.#reader;
    const at = this.#at(DT_SYMTAB) + index * 24;
    const called = reader.cstring(this.#at(DT_STRTAB) + reader.uint32(at), LONGEST_NAME);
    return called === name && reader.uint16(at + 6) !== 0
      ? this.#bias + reader.uint64(at + 8)
      : null;
  }

  /** An address from the dynamic section. The loader has added the bias to it, but not in every object. */
  #at(tag: number): Address {
    const value = present(this.#tags.get(tag));
    return value < this.#bias ? value + this.#bias : value;
  }
}
