/** The moment of a step at which most memory is live. */
import type { Bytes } from "../../model/base/units.js";
import { SavedByPart } from "./saved_by_part.js";
import type { TapePart, Unit } from "./tape.js";

/** The live memory at one moment, in addition to weights and optimizer states. */
export interface Moment {
  /** "forward pass", "loss", "backward pass of decoder.31". */
  readonly where: string;
  readonly bytes: Bytes;
  readonly saved: ReadonlyMap<TapePart, Bytes>;
  /** Results, gradients of results and temporary buffers. */
  readonly working: Bytes;
  readonly gradients: Bytes;
  readonly communication: Bytes;
  /** The unit that runs, and in which pass; null before the first. */
  readonly running: { readonly unit: Unit; readonly backward: boolean } | null;
}

/** What a simulation changes from operation to operation. */
export interface LiveBytes {
  savedBytes: Bytes;
  readonly saved: SavedByPart;
  /** Results, gradients of results. */
  working: Bytes;
  /** Of parameters. */
  gradients: Bytes;
  communication: Bytes;
}

/** Where a simulation is. */
export interface Place {
  unit: Unit | null;
  /** `recomputation`: the forward pass of a unit that the backward pass runs again. */
  pass: "forward" | "recomputation" | "backward";
  part: TapePart;
}

/** Keeps the largest moment in figures: a forward pass has a new one in nearly each operation. */
export class LargestMoment {
  #bytes = Number.NEGATIVE_INFINITY;
  #working = 0;
  #gradients = 0;
  #communication = 0;
  readonly #saved = new SavedByPart();
  readonly #place: Place = { unit: null, pass: "forward", part: "embedding" };

  /** @param extra bytes that live only while the operation runs */
  note(live: LiveBytes, extra: Bytes, { unit, pass, part }: Place): void {
    const { savedBytes, working, gradients, communication } = live;
    const bytes = savedBytes + working + gradients + communication + extra;
    if (bytes <= this.#bytes) {
      return;
    }
    this.#bytes = bytes;
    this.#working = working + extra;
    this.#gradients = gradients;
    this.#communication = communication;
    this.#saved.copy(live.saved);
    this.#place.unit = unit;
    this.#place.pass = pass;
    this.#place.part = part;
  }

  asMoment(): Moment {
    const { unit, pass } = this.#place;
    return {
      where: wordsOf(this.#place),
      bytes: Math.max(0, this.#bytes),
      saved: this.#saved.asMap(),
      working: this.#working,
      gradients: this.#gradients,
      communication: this.#communication,
      running: unit === null ? null : { unit, backward: pass !== "forward" },
    };
  }
}

function wordsOf({ unit, pass, part }: Place): string {
  if (unit === null) {
    return "start";
  }
  const isLoss = part === "head and loss";
  switch (pass) {
    case "forward":
      return isLoss ? "loss" : "forward pass";
    case "recomputation":
      return isLoss ? "loss" : `backward pass of ${unit.name}`;
    case "backward":
      return `backward pass of ${isLoss ? "the loss" : unit.name}`;
  }
}
