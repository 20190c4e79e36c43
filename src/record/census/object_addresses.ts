/** Finds new objects. CPython stores no creation time, but an object at a previously unused address is new. */

import { wholeRegions } from "../../cpython/heap/memory/heap_parts.js";
import { type HeapLayout, heapLayout } from "../../cpython/heap/memory/layout.js";
import { addressOf, type FoundObjects, HeapScan } from "../../cpython/heap/objects/heap_scan.js";
import { TypeTable } from "../../cpython/heap/objects/type_table.js";
import { locatePython } from "../../cpython/interpreter/locate.js";
import type { Memory } from "../../linux/memory/memory.js";
import { float64At, int32At, itemAt } from "../../model/base/columns.js";
import type { Address } from "../../model/base/units.js";

/** Most objects of a type, evenly over its addresses. */
const MOST_OF_TYPE = 48;
/** Fewer new objects are not significant for a growing type. */
const FEWEST_OF_TYPE = 8;
const FIRST_ROOM = 1 << 16;

export class ObjectAddresses {
  #known = new Float64Array(0);

  /** Remembers the current addresses of objects, eight bytes each. Throws TidemarkError. */
  take(memory: Memory): void {
    let found = new Float64Array(FIRST_ROOM);
    let count = 0;
    scan(memory, (address) => {
      if (count === found.length) {
        const wider = new Float64Array(2 * found.length);
        wider.set(found);
        found = wider;
      }
      found[count++] = address;
    });
    this.#known = found.slice(0, count).sort();
  }

  /** New objects by type name, at most {@link MOST_OF_TYPE} of each. Throws TidemarkError. */
  newOf(memory: Memory, types: readonly string[]): Map<string, Address[]> {
    const born = new Map<string, Address[]>(types.map((type) => [type, []]));
    scan(memory, (address, type) => {
      const addresses = born.get(type());
      if (addresses && !this.#has(address)) {
        addresses.push(address);
      }
    });
    return new Map(
      [...born]
        .filter(([, addresses]) => addresses.length >= FEWEST_OF_TYPE)
        .map(([type, addresses]) => [type, thinned(addresses)]),
    );
  }

  #has(address: Address): boolean {
    let low = 0;
    let high = this.#known.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (float64At(this.#known, middle) < address) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return this.#known[low] === address;
  }
}

function scan(memory: Memory, visit: (address: Address, type: () => string) => void): void {
  const layout = layoutOf(memory);
  const types = new TypeTable(memory, layout);
  const visitor = {
    objects: (found: FoundObjects) => {
      for (let n = 0; n < found.count; n++) {
        visit(addressOf(found, n), () => types.name(int32At(found.types, n)));
      }
    },
  };
  new HeapScan(memory, layout, types, visitor).run(wholeRegions(memory));
}

function layoutOf(memory: Memory): HeapLayout {
  const { version } = locatePython(memory);
  const layout = heapLayout(Number(/^3\.(\d+)/.exec(version)?.[1]));
  if (layout === null) {
    throw new Error(`no heap layout for Python ${version}`); // the locator supports no other versions
  }
  return layout;
}

function thinned(addresses: readonly Address[]): Address[] {
  const step = Math.max(1, addresses.length / MOST_OF_TYPE);
  return Array.from({ length: Math.min(addresses.length, MOST_OF_TYPE) }, (_, i) =>
    itemAt(addresses, Math.floor(i * step)),
  );
}
