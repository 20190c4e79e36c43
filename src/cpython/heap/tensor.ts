/**
 * The storage of a torch tensor, without torch's own layouts, which move from release to release:
 *
 *   TensorImpl   0 vtable   8 refcounts   ... pointer to a StorageImpl within the first words
 *   StorageImpl  0 vtable   8 refcounts   16 or 24 data pointer ...   size in bytes behind it
 *
 * A candidate counts as a storage when its data pointer leads to memory that is there, and the word that
 * should be its size fits the chunk of malloc that holds the data. What lies on a device is not to be read:
 * there the blocks of the device's own allocator take the place of malloc's chunks.
 */
import type { Memory } from "../../linux/memory.js";
import type { Address, Bytes } from "../../model/units.js";
import { readWords } from "./small_objects.js";

const TENSOR_WORDS = 8;
const STORAGE_WORDS = 10;
const FIRST_DATA_WORD = 2;

export interface TensorStorage {
  readonly data: Address;
  readonly bytes: Bytes;
}

/** Whether an allocation that begins at `data` holds so many bytes. */
export type Holds = (data: Address, bytes: Bytes) => boolean;

/** THPVariable: the implementation, or a flag before it (torch 1.11 to 2.8). */
export const IMPLEMENTATION_AT = [16, 24] as const;

/** Of the Python object that is a tensor. */
export function readStorageOf(memory: Memory, object: Address): TensorStorage | null {
  for (const at of IMPLEMENTATION_AT) {
    const implementation = readWords(memory, object + at, 1)?.[0] ?? 0;
    const storage = implementation > 0 ? readTensorStorage(memory, implementation) : null;
    if (storage !== null) {
      return storage;
    }
  }
  return null;
}

/** null where no storage can be told: `holds` knows no such allocation. By default it is one of malloc's. */
export function readTensorStorage(
  memory: Memory,
  tensor: Address,
  holds: Holds = (data, bytes) => fillsChunk(memory, data, bytes),
): TensorStorage | null {
  const words = readWords(memory, tensor, TENSOR_WORDS);
  if (words === null || !isAddress(words[0])) {
    return null;
  }
  for (let n = FIRST_DATA_WORD; n < TENSOR_WORDS; n++) {
    const storage = isAddress(words[n]) ? readStorage(memory, words[n], holds) : null;
    if (storage !== null) {
      return storage;
    }
  }
  return null;
}

function readStorage(memory: Memory, address: Address, holds: Holds): TensorStorage | null {
  const words = readWords(memory, address, STORAGE_WORDS);
  if (words === null || !isAddress(words[0])) {
    return null;
  }
  for (let n = FIRST_DATA_WORD; n < FIRST_DATA_WORD + 2; n++) {
    const data = words[n];
    if (!isAddress(data)) {
      continue;
    }
    for (let size = n + 2; size < STORAGE_WORDS; size++) {
      if (words[size] > 0 && holds(data, words[size])) {
        return { data, bytes: words[size] };
      }
    }
  }
  return null;
}

/** Torch aligns data to 64 bytes within chunks of malloc's: the chunk's head stands right before it. */
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
