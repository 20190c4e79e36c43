/** Frames, stacks and labels as rows, each once, and their ids, computed once for each row of a dictionary. */

import { itemAt, uint8At, uint32At } from "../../model/base/columns.js";
import type { FrameId, LabelId, StackId } from "../../model/base/units.js";
import { frameName, framesOf, labelPairs } from "../../model/profile/frame_text.js";
import type { ProfileTables } from "../../model/profile/profile.js";
import { contentId } from "./content_ids.js";
import { KeptIds } from "./kept/kept_ids.js";
import type { AddRow } from "./schema.js";
import { stackIdOf } from "./stack_ids.js";
import type { WrittenIds } from "./written_ids.js";

const MAX_INTEGER = 2 ** 31 - 1;
const NO_FRAMES = contentId("stack");
const KIND_NAMES = ["python", "native", "mark"] as const;

/** For one recording, whose dictionaries only grow, so an id stays valid. */
export class DictionaryRows {
  readonly #add: AddRow;
  readonly #labelValue: (name: string, value: string) => string;
  readonly #written: WrittenIds;
  /** By row, as many as there are rows. */
  #frameIds = new BigUint64Array(0);
  /** Of the stacks whose rows have been added. */
  readonly #stackIds = new KeptIds();
  /** How many stacks there were when {@link take} was called last. */
  #stacks = 1;
  /** Ids of the stacks that were new then, until {@link release}. */
  #fresh = { from: 1, ids: new BigUint64Array(0) };
  readonly #labelIds: bigint[] = [];

  /** `labelValue`: the value under which a label's value is stored. `written`: what `add` has been called with. */
  constructor(
    add: AddRow,
    labelValue: (name: string, value: string) => string,
    written: WrittenIds,
  ) {
    this.#add = add;
    this.#labelValue = labelValue;
    this.#written = written;
  }

  /** Must be called with the tables before ids of their rows are requested. */
  take(tables: ProfileTables): void {
    const { frames, stacks, strings } = tables;
    const known = this.#frameIds.length;
    if (known < frames.length) {
      this.#frameIds = extended(this.#frameIds, frames.length);
      for (let frame = known; frame < frames.length; frame++) {
        this.#frameIds[frame] = contentId(
          "frame",
          frameName(tables, frame),
          itemAt(strings, uint32At(frames.file, frame)),
          uint32At(frames.line, frame),
          uint8At(frames.kind, frame),
        );
      }
    }
    if (this.#stacks < stacks.length) {
      const from = this.#stacks;
      const ids = new BigUint64Array(stacks.length - from);
      this.#fresh = { from, ids };
      // Computed from the parent's id and the frame's own: parents come first.
      for (let stack = from; stack < stacks.length; stack++) {
        const parent = this.#idOf(tables, uint32At(stacks.parent, stack));
        const frame = idAt(this.#frameIds, uint32At(stacks.frame, stack));
        ids[stack - from] = stackIdOf(parent, frame);
      }
      this.#stacks = stacks.length;
    }
  }

  /** Must be called after the ids were requested: those of stacks that were not are dropped. */
  release(): void {
    this.#fresh = { from: this.#stacks, ids: new BigUint64Array(0) };
  }

  #idOf(tables: ProfileTables, stack: StackId): bigint {
    const { from, ids } = this.#fresh;
    if (stack >= from) {
      return idAt(ids, stack - from);
    }
    return this.#stackIds.get(stack) ?? this.#idFromRoot(tables, stack);
  }

  #idFromRoot(tables: ProfileTables, stack: StackId): bigint {
    return framesOf(tables, stack).reduceRight(
      (parent, frame) => stackIdOf(parent, idAt(this.#frameIds, frame)),
      NO_FRAMES,
    );
  }

  /** Rows that were written may have been removed: they are written again when they are needed, if `written` is emptied. */
  forgetWritten(): void {
    this.#stackIds.clear();
    this.#labelIds.length = 0;
  }

  stackId(tables: ProfileTables, stack: StackId): bigint {
    const known = this.#stackIds.get(stack);
    if (known !== undefined) {
      return known;
    }
    const id = this.#idOf(tables, stack);
    this.#stackIds.add(stack, id);
    if (this.#written.isNew(id)) {
      const frames = framesOf(tables, stack);
      this.#add(
        "stacks",
        id,
        Array.from(frames, (frame) => this.#frameId(tables, frame)),
      );
    }
    return id;
  }

  labelId(tables: ProfileTables, label: LabelId): bigint {
    let id = this.#labelIds[label];
    if (id === undefined) {
      const pairs = Array.from(
        labelPairs(tables, label),
        ([key, value]) => [key, this.#labelValue(key, value)] as const,
      );
      id = contentId("label", ...pairs.flat());
      this.#labelIds[label] = id;
      if (this.#written.isNew(id)) {
        const keys = pairs.map(([key]) => key);
        const values = pairs.map(([, value]) => value);
        this.#add("labels", id, keys, values);
      }
    }
    return id;
  }

  #frameId(tables: ProfileTables, frame: FrameId): bigint {
    const { frames, strings } = tables;
    const id = idAt(this.#frameIds, frame);
    if (this.#written.isNew(id)) {
      this.#add(
        "frames",
        id,
        frameName(tables, frame),
        itemAt(strings, uint32At(frames.file, frame)),
        Math.min(uint32At(frames.line, frame), MAX_INTEGER),
        KIND_NAMES[uint8At(frames.kind, frame)] ?? "mark",
      );
    }
    return id;
  }
}

function extended(ids: BigUint64Array, length: number): BigUint64Array<ArrayBuffer> {
  const longer = new BigUint64Array(length);
  longer.set(ids);
  return longer;
}

/** Throws RangeError for a row that does not exist. */
function idAt(ids: BigUint64Array, row: number): bigint {
  const id = ids[row];
  if (id === undefined) {
    throw new RangeError(`row ${row} of ${ids.length}`);
  }
  return id;
}
