/**
 * The order in which a step allocates and frees, so that a model of the caching allocator can replay it.
 *
 * A tensor is allocated when the first reason to hold it appears (a running operation, autograd) and freed when the last
 * one disappears.
 */
import type { Bytes } from "../../model/base/units.js";

interface Held {
  readonly id: number;
  reasons: number;
}

export class AllocationTrace {
  /** `id + 1` for an allocation, `-(id + 1)` for a free. */
  readonly events: number[] = [];
  /** Bytes of each allocation, by id. */
  readonly bytes: Bytes[] = [];
  /** The stream of each allocation, by id: memory that one stream has freed is not given to another. */
  readonly streams: number[] = [];
  readonly #held = new Map<object, Held>();

  /** One more reason to hold `key`. */
  hold(key: object, bytes: Bytes, stream = 0): void {
    const held = this.#held.get(key);
    if (held !== undefined) {
      held.reasons += 1;
      return;
    }
    this.#held.set(key, { id: this.#allocate(bytes, stream), reasons: 1 });
  }

  /** One reason less. */
  drop(key: object): void {
    const held = this.#held.get(key);
    if (held === undefined) {
      return;
    }
    held.reasons -= 1;
    if (held.reasons === 0) {
      this.#held.delete(key);
      this.events.push(-(held.id + 1));
    }
  }

  /** The memory of `from` belongs to `to` from now on. */
  move(from: object, to: object): void {
    const held = this.#held.get(from);
    if (held !== undefined) {
      this.#held.delete(from);
      this.#held.set(to, held);
    }
  }

  /** Allocations that live only while one operation runs. */
  pass(...sizes: readonly Bytes[]): void {
    const ids = sizes.filter((bytes) => bytes > 0).map((bytes) => this.#allocate(bytes, 0));
    for (const id of ids) {
      this.events.push(-(id + 1));
    }
  }

  /** Frees what the step still holds, gradients of parameters included. */
  end(): void {
    for (const { id } of this.#held.values()) {
      this.events.push(-(id + 1));
    }
    this.#held.clear();
  }

  #allocate(bytes: Bytes, stream: number): number {
    const id = this.bytes.length;
    this.bytes.push(bytes);
    this.streams.push(stream);
    this.events.push(id + 1);
    return id;
  }
}
