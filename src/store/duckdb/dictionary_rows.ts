/** Frames, stacks and labels as rows, each once, and their ids, computed once for each row of a dictionary. */

import { itemAt, uint8At, uint32At } from "../../model/base/columns.js";
import type { FrameId, LabelId, StackId } from "../../model/base/units.js";
import { frameName, framesOf, labelPairs } from "../../model/profile/frame_text.js";
import type { ProfileTables } from "../../model/profile/profile.js";
import { contentId } from "./content_ids.js";
import type { AddRow } from "./schema.js";
import { stackIdOf } from "./stack_ids.js";

const MAX_INTEGER = 2 ** 31 - 1;
const KIND_NAMES = ["python", "native", "mark"] as const;

/** For one recording, whose dictionaries only grow, so an id stays valid. */
export class DictionaryRows {
  readonly #add: AddRow;
  readonly #labelValue: (name: string, value: string) => string;
  /** Ids whose row exists: different rows of a dictionary may have the same content. */
  readonly #written = new Set<bigint>();
  readonly #frameIds: bigint[] = [];
  readonly #stackIds: bigint[] = [contentId("stack")];
  /** By row: 1 if its row has been added. */
  #stackSeen = new Uint8Array(0);
  readonly #labelIds: bigint[] = [];

  /** `labelValue`: the value under which a label's value is stored. */
  constructor(add: AddRow, labelValue: (name: string, value: string) => string) {
    this.#add = add;
    this.#labelValue = labelValue;
  }

  /** Must be called with the tables before ids of their rows are requested. */
  take(tables: ProfileTables): void {
    const { frames, stacks, strings } = tables;
    for (let frame = this.#frameIds.length; frame < frames.length; frame++) {
      this.#frameIds.push(
        contentId(
          "frame",
          frameName(tables, frame),
          itemAt(strings, uint32At(frames.file, frame)),
          uint32At(frames.line, frame),
          uint8At(frames.kind, frame),
        ),
      );
    }
    // Computed from the parent's id and the frame's own: parents come first.
    for (let stack = this.#stackIds.length; stack < stacks.length; stack++) {
      const parent = itemAt(this.#stackIds, uint32At(stacks.parent, stack));
      this.#stackIds.push(stackIdOf(parent, itemAt(this.#frameIds, uint32At(stacks.frame, stack))));
    }
    if (this.#stackSeen.length < stacks.length) {
      const seen = new Uint8Array(stacks.length);
      seen.set(this.#stackSeen);
      this.#stackSeen = seen;
    }
  }

  /** Rows that were written may have been removed: they are written again when they are needed. */
  forgetWritten(): void {
    this.#written.clear();
    this.#stackSeen.fill(0);
    this.#labelIds.length = 0;
  }

  stackId(tables: ProfileTables, stack: StackId): bigint {
    const id = itemAt(this.#stackIds, stack);
    if (this.#stackSeen[stack] === 0) {
      this.#stackSeen[stack] = 1;
      if (this.#isNew(id)) {
        const frames = framesOf(tables, stack);
        this.#add(
          "stacks",
          id,
          Array.from(frames, (frame) => this.#frameId(tables, frame)),
        );
      }
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
      if (this.#isNew(id)) {
        const keys = pairs.map(([key]) => key);
        const values = pairs.map(([, value]) => value);
        this.#add("labels", id, keys, values);
      }
    }
    return id;
  }

  /** True at the first call with an id. */
  #isNew(id: bigint): boolean {
    const isNew = !this.#written.has(id);
    this.#written.add(id);
    return isNew;
  }

  #frameId(tables: ProfileTables, frame: FrameId): bigint {
    const { frames, strings } = tables;
    const id = itemAt(this.#frameIds, frame);
    if (this.#isNew(id)) {
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
