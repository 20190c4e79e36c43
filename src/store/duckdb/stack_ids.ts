/**
 * Ids of stacks, each a hash of its parent's id and its frame's. Processes of a service have the same stacks, and hashing is
 * most of the work of writing a new process's first profile, so ids are remembered for all streams of the server.
 */
import { mixHash, RowIndex } from "../../model/base/row_index.js";
import { contentId } from "./content_ids.js";

/** 24 bytes each, and as much again for the index. */
const MOST_REMEMBERED = 400_000;

export class StackIds {
  readonly #parents: BigUint64Array;
  readonly #frames: BigUint64Array;
  readonly #ids: BigUint64Array;
  #index = new RowIndex();
  #count = 0;

  /** Beyond `most`, all are forgotten. */
  constructor(most = MOST_REMEMBERED) {
    this.#parents = new BigUint64Array(most);
    this.#frames = new BigUint64Array(most);
    this.#ids = new BigUint64Array(most);
  }

  of(parent: bigint, frame: bigint): bigint {
    const hash = mixHash(low(parent), low(frame));
    const found = this.#index.find(
      hash,
      (row) => this.#parents[row] === parent && this.#frames[row] === frame,
    );
    if (found >= 0) {
      return this.#ids[found] as bigint;
    }
    if (this.#count === this.#ids.length) {
      this.#index = new RowIndex();
      this.#count = 0;
    }
    const id = contentId("stack", parent, frame);
    this.#parents[this.#count] = parent;
    this.#frames[this.#count] = frame;
    this.#ids[this.#count] = id;
    this.#index.add(hash, this.#count);
    this.#count += 1;
    return id;
  }
}

function low(id: bigint): number {
  return Number(BigInt.asUintN(32, id));
}

let shared: StackIds | null = null;

export function stackIdOf(parent: bigint, frame: bigint): bigint {
  shared ??= new StackIds();
  return shared.of(parent, frame);
}
