/**
 * Finds the storage of a torch tensor without torch's layouts, which change between releases:
 *
 *   TensorImpl   0 vtable   8 refcounts   ... pointer to a StorageImpl within the first words,
 *                                             behind it one to an AutogradMeta, or none
 *   StorageImpl  0 vtable   8 refcounts   16 or 24 data pointer ...   size in bytes behind it
 *   AutogradMeta 0 vtable   8 name, a std::string   gradient   what made it (grad_fn), where a graph did
 *
 * A candidate is a storage if its data pointer leads to mapped memory and the word at the place of its size
 * matches the malloc chunk that contains the data. Device memory cannot be read; there the blocks of the
 * device's allocator take the place of malloc's chunks.
 */

import type { Memory } from "../../../linux/memory/memory.js";
import { float64At } from "../../../model/base/columns.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import { readWords } from "./small_objects.js";

const TENSOR_WORDS = 8;
const STORAGE_WORDS = 10;
const FIRST_DATA_WORD = 2;
const AUTOGRAD_WORDS = 8;
/** Length of a short name in AutogradMeta. */
const INLINE_CHARACTERS = 24;

interface TensorStorage {
  readonly data: Address;
  readonly bytes: Bytes;
}

interface TensorImplementation {
  readonly storage: TensorStorage;
  /** Address of its AutogradMeta; 0 if it has none. */
  readonly autograd: Address;
}

/** Whether an allocation that begins at `data` contains this many bytes. */
export type Holds = (data: Address, bytes: Bytes) => boolean;

/** THPVariable: the implementation, or a flag before it (torch 1.11 to 2.8). */
export const IMPLEMENTATION_AT = [16, 24] as const;

/** For the Python object of a tensor. */
export function readStorageOf(memory: Memory, object: Address): TensorStorage | null {
  return implementationOf(memory, object)?.storage ?? null;
}

/** Whether operations of a graph created the tensor, which then keeps that graph alive. By its Python object. */
export function isMadeByGraph(memory: Memory, object: Address): boolean {
  const autograd = implementationOf(memory, object)?.autograd ?? 0;
  const words = isAddress(autograd) ? readWords(memory, autograd, AUTOGRAD_WORDS) : null;
  const behindName = words === null ? null : wordsAfterName(memory, words, autograd);
  return (
    behindName !== null &&
    isAddress(float64At(behindName, 0)) &&
    isAddress(float64At(behindName, 1))
  );
}

function implementationOf(memory: Memory, object: Address): TensorImplementation | null {
  for (const at of IMPLEMENTATION_AT) {
    const address = readWords(memory, object + at, 1)?.[0] ?? 0;
    const implementation =
      address > 0 ? readImplementation(memory, address, ofMalloc(memory)) : null;
    if (implementation !== null) {
      return implementation;
    }
  }
  return null;
}

/** The gradient and what follows it; null if no std::string precedes it. */
function wordsAfterName(
  memory: Memory,
  words: Float64Array,
  autograd: Address,
): Float64Array | null {
  const characters = float64At(words, 1);
  if (characters === autograd + INLINE_CHARACTERS) {
    return words.subarray(5);
  }
  // A string before C++11: one pointer, with length, capacity and count before the characters.
  const head = isAddress(characters) ? readWords(memory, characters - 24, 3) : null;
  return head !== null && head[0] === 0 && head[1] === 0 ? words.subarray(2) : null;
}

/**
 * null if no storage can be identified, because `holds` knows no such allocation. By default the allocation is
 * a malloc chunk.
 */
export function readTensorStorage(
  memory: Memory,
  tensor: Address,
  holds: Holds = ofMalloc(memory),
): TensorStorage | null {
  return readImplementation(memory, tensor, holds)?.storage ?? null;
}

function ofMalloc(memory: Memory): Holds {
  return (data, bytes) => fillsChunk(memory, data, bytes);
}

function readImplementation(
  memory: Memory,
  tensor: Address,
  holds: Holds,
): TensorImplementation | null {
  const words = readWords(memory, tensor, TENSOR_WORDS + 1);
  if (words === null || !isAddress(float64At(words, 0))) {
    return null;
  }
  for (let n = FIRST_DATA_WORD; n < TENSOR_WORDS; n++) {
    const storage = isAddress(float64At(words, n))
      ? readStorage(memory, float64At(words, n), holds)
      : null;
    if (storage !== null) {
      return { storage, autograd: float64At(words, n + 1) };
    }
  }
  return null;
}

function readStorage(memory: Memory, address: Address, holds: Holds): TensorStorage | null {
  const words = readWords(memory, address, STORAGE_WORDS);
  if (words === null || !isAddress(float64At(words, 0))) {
    return null;
  }
  for (let n = FIRST_DATA_WORD; n < FIRST_DATA_WORD + 2; n++) {
    const data = float64At(words, n);
    if (!isAddress(data)) {
      continue;
    }
    for (let size = n + 2; size < STORAGE_WORDS; size++) {
      if (float64At(words, size) > 0 && holds(data, float64At(words, size))) {
        return { data, bytes: float64At(words, size) };
      }
    }
  }
  return null;
}

/** Torch aligns data to 64 bytes within malloc chunks, so the chunk's header precedes it directly. */
function fillsChunk(memory: Memory, data: Address, bytes: Bytes): boolean {
  const head = readWords(memory, data - 8, 1)?.[0];
  if (head === undefined) {
    return false;
  }
  const chunk = head - (head % 8);
  return bytes <= chunk - 8 && chunk < bytes + 8192;
}

function isAddress(word: number): boolean {
  return word >= 65536 && word < 2 ** 47 && word % 8 === 0;
}
