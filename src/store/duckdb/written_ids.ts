/**
 * Ids of dictionary rows that exist, for all streams of a store: processes of a service have the same frames and stacks, so
 * their rows are written once. Forgetting them is harmless: rows that exist are left as they are.
 */

const MOST_REMEMBERED = 500_000;

export class WrittenIds {
  readonly #ids = new Set<bigint>();

  /** True at the first call with an id. */
  isNew(id: bigint): boolean {
    if (this.#ids.has(id)) {
      return false;
    }
    if (this.#ids.size >= MOST_REMEMBERED) {
      this.#ids.clear();
    }
    this.#ids.add(id);
    return true;
  }

  clear(): void {
    this.#ids.clear();
  }
}
