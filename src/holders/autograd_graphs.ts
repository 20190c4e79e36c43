/**
 * Measures the autograd graph behind a tensor in the running program. For a result that is replaced at each
 * step (total = total + loss), a copy of the heap may have the name of one moment and the structures of
 * another.
 *
 *     tensor ──> TensorImpl ──> AutogradMeta ──> node ──> edges ──> node ──> ...     a graph of one step, or of all
 */

import { FIRST_OBJECT, type ObjectGraph } from "../cpython/heap/index.js";
import { heapRegions } from "../cpython/heap/memory/heap_regions.js";
import { valuesInPlace } from "../cpython/heap/names/attributes.js";
import { lastAtMost } from "../cpython/heap/objects/owned_buffers.js";
import { readDictEntries, readWords } from "../cpython/heap/objects/small_objects.js";
import { isMadeByGraph } from "../cpython/heap/objects/tensor.js";
import { SHAPE_DICT } from "../cpython/heap/objects/type_table.js";
import type { AddressRange, Memory } from "../linux/memory/memory.js";
import { float64At, itemAt, uint32At } from "../model/base/columns.js";
import type { Address, Bytes, Millis } from "../model/base/units.js";
import type { NodeId } from "../model/heap/heap_graph.js";

/** Several steps long, so that each name is seen with its newest result. */
const WATCHED_MS: Millis = 600;
const FEWEST_ROUNDS = 4;
/** Most blocks counted in one graph; larger graphs all count as equal. */
const MOST_BLOCKS = 4_000;
/** Largest C++ object; anything larger is data. */
const LARGEST_BLOCK: Bytes = 2_048;
/** The tensor's Python object. */
const TENSOR_WORDS = 9;

/**
 * For each tensor, and later tensors with the same name, the most blocks found behind it while it was the
 * result of a graph; 0 if it never was.
 */
export function graphSizes(objects: ObjectGraph, tensors: readonly NodeId[]): number[] {
  const memory = objects.copy.source;
  const named = tensors.map((tensor) => nameOf(objects, tensor));
  const sizes = tensors.map(() => 0);
  const startedMs = performance.now();
  for (
    let round = 0;
    round < FEWEST_ROUNDS || performance.now() - startedMs < WATCHED_MS;
    round++
  ) {
    memory.refresh(); // newer objects may be in newly mapped memory
    const blocks = new LiveBlocks(objects);
    named.forEach((now, n) => {
      const tensor = now();
      if (isMadeByGraph(memory, tensor)) {
        sizes[n] = Math.max(itemAt(sizes, n), blocks.countReachableBlocks(tensor));
      }
    });
  }
  return sizes;
}

/** The object that is now in the tensor's place in the copy: a dict item or an attribute. */
function nameOf(objects: ObjectGraph, tensor: NodeId): () => Address {
  const { graph, copy, layout, types, paths } = objects;
  const address = float64At(graph.address, tensor);
  const holder = uint32At(paths.before, tensor);
  if (holder < FIRST_OBJECT) {
    return () => address;
  }
  if (types.of(uint32At(graph.type, holder)).shape === SHAPE_DICT) {
    const dict = float64At(graph.address, holder);
    const entries = (memory: Memory) => readDictEntries(memory, layout, dict) ?? [];
    const item = entries(copy).find(({ value }) => value === address);
    return () => entries(copy.source).find(({ key }) => key === item?.key)?.value ?? address;
  }
  const attribute = [...valuesInPlace(objects, holder)].find(({ value }) => value === address);
  return () =>
    (attribute === undefined ? null : readWords(copy.source, attribute.at, 1))?.[0] ?? address;
}

class LiveBlocks {
  readonly memory: Memory;
  readonly #regions: readonly AddressRange[];

  constructor(readonly objects: ObjectGraph) {
    this.memory = objects.copy.source;
    this.#regions = heapRegions(this.memory);
  }

  countReachableBlocks(tensor: Address): number {
    const met = new Set<Address>();
    const waiting: Float64Array[] = [];
    const follow = (words: Float64Array | null) => words !== null && waiting.push(words);
    follow(readWords(this.memory, tensor, TENSOR_WORDS));
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      for (const word of next) {
        if (met.size >= MOST_BLOCKS) {
          return met.size;
        }
        // Objects would lead to everything else.
        if (
          word % 16 === 0 &&
          !met.has(word) &&
          this.objects.index.at(word) === 0 &&
          this.#isInHeap(word)
        ) {
          met.add(word);
          follow(this.#wordsOf(word));
        }
      }
    }
    return met.size;
  }

  /** The malloc block that begins there; null if none does, or if it is a large one. */
  #wordsOf(block: Address): Float64Array | null {
    const head = readWords(this.memory, block - 8, 1)?.[0] ?? 0;
    const bytes = head - (head % 16) - 8;
    return bytes >= 24 && bytes <= LARGEST_BLOCK ? readWords(this.memory, block, bytes / 8) : null;
  }

  #isInHeap(address: Address): boolean {
    const place = lastAtMost(this.#regions.length, (n) => itemAt(this.#regions, n).start, address);
    return place >= 0 && address < itemAt(this.#regions, place).end;
  }
}
