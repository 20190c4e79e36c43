/** Allocators as memray numbers them (src/memray/_memray/hooks.h); version 12 changed the numbers. */
import { Domain } from "../../../model/profile/profile.js";
import { ForeignFault } from "../importer.js";

export interface Allocator {
  readonly domain: Domain;
  readonly frees: boolean;
  /** Allocates or frees a range of addresses. */
  readonly ranged: boolean;
}

const python: Allocator = { domain: Domain.python, frees: false, ranged: false };
const native: Allocator = { domain: Domain.native, frees: false, ranged: false };
const free: Allocator = { domain: Domain.native, frees: true, ranged: false };
const mmap: Allocator = { domain: Domain.mapped, frees: false, ranged: true };
const munmap: Allocator = { domain: Domain.mapped, frees: true, ranged: true };

/** malloc, free, calloc, realloc, four aligned ones, pvalloc, mmap, munmap, then pymalloc's malloc, calloc, realloc, free. */
const VERSION_11: readonly Allocator[] = [
  ...[native, free, ...Array<Allocator>(7).fill(native), mmap, munmap],
  ...[python, python, python, free],
];
/** pymalloc's free, malloc, calloc, realloc, then free, malloc, realloc, calloc, five aligned ones, mmap, munmap. */
const VERSION_12: readonly Allocator[] = [
  ...[free, python, python, python, free, ...Array<Allocator>(8).fill(native), mmap, munmap],
];

export function allocatorOf(version: number, number: number): Allocator {
  const allocator = (version >= 12 ? VERSION_12 : VERSION_11)[number - 1];
  if (allocator === undefined) {
    throw new ForeignFault(`the allocator ${number} is unknown`);
  }
  return allocator;
}
