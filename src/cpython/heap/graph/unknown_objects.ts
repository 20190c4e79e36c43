/** What a copy of a heap refers to, but does not contain. */
import type { AddressRange } from "../../../linux/memory/memory.js";
import { itemAt } from "../../../model/base/columns.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import type { HeapPages } from "../memory/heap_pages.js";
import { heapRegions } from "../memory/heap_regions.js";
import { lastAtMost } from "../objects/owned_buffers.js";
import { NodeIndex, type ObjectIndex } from "./node_index.js";

/** Lowest address of kernel-chosen mappings; smaller values are more likely numbers than addresses. */
const LOWEST_MAPPED: Address = 2 ** 40;
const NEAR: Bytes = 2 ** 30;

/** Addresses in the heap at which no object is known, or whose object no longer exists. */
export class UnknownObjects implements ObjectIndex {
  readonly gone: Set<Address>;
  /** Addresses of new objects, and addresses at which no object was found when they were read again. */
  readonly known = new Set<Address>();
  readonly #found = new Set<Address>();
  readonly #mappings: readonly AddressRange[];
  readonly #regions: readonly AddressRange[];
  readonly #index: NodeIndex;

  constructor(copy: HeapPages, addresses: Float64Array, gone: readonly Address[]) {
    this.gone = new Set(gone);
    this.#index = new NodeIndex(copy, addresses, 1);
    this.#regions = heapRegions(copy.source);
    this.#mappings = copy.source.mappings;
  }

  /** The unknown addresses that `visit` asks for. */
  during(visit: () => void): readonly Address[] {
    this.forget();
    visit();
    return [...this.#found];
  }

  /** Whether any was asked for since {@link forget}. */
  get areFound(): boolean {
    return this.#found.size > 0;
  }

  forget(): void {
    if (this.#found.size > 0) {
      this.#found.clear();
    }
  }

  find(low: number, high: number): 0 {
    if ((low & 15) !== 0) {
      return 0;
    }
    // Nearly every address is that of an object that is still there.
    const isObject = this.#index.find(low, high) !== 0;
    if (isObject && this.gone.size === 0) {
      return 0;
    }
    const address = high * 2 ** 32 + (low >>> 0);
    const isUnknown = isObject ? this.gone.has(address) : this.#mayBeHeap(address);
    if (isUnknown && !this.known.has(address)) {
      this.#found.add(address);
    }
    return 0;
  }

  /** Also true near the heap's mappings: a large block has its own mapping, which may have been unmapped since. */
  #mayBeHeap(address: Address): boolean {
    if (rangeAt(this.#regions, address) !== null) {
      return true;
    }
    const mappings = this.#mappings;
    const before = lastAtMost(mappings.length, (n) => itemAt(mappings, n).start, address);
    const end = mappings[before]?.end ?? 0;
    const next = mappings[before + 1]?.start ?? Number.POSITIVE_INFINITY;
    return (
      address > LOWEST_MAPPED && address >= end && Math.min(address - end, next - address) < NEAR
    );
  }
}

function rangeAt(ranges: readonly AddressRange[], address: Address): AddressRange | null {
  const range = ranges[lastAtMost(ranges.length, (n) => itemAt(ranges, n).start, address)];
  return range !== undefined && address < range.end ? range : null;
}
